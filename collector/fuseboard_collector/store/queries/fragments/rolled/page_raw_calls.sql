SELECT * FROM tool_calls WHERE "end" > $since::TIMESTAMP AND "end" <= $head_until::TIMESTAMP
UNION ALL
SELECT * FROM tool_calls WHERE "end" > $tail_since::TIMESTAMP AND "end" <= $until::TIMESTAMP
-- include page_dirty_rows of tool_calls by *
