SELECT @keys FROM @these WHERE "end" > $since::TIMESTAMP AND "end" <= $head_until::TIMESTAMP
UNION ALL
SELECT @keys FROM @these WHERE "end" > $tail_since::TIMESTAMP AND "end" <= $until::TIMESTAMP
-- include page_dirty_rows of @these by @keys
