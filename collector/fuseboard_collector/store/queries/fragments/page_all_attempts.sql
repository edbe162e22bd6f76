SELECT * FROM attempts WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
