SELECT * FROM tool_calls WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
