SELECT * FROM tool_calls WHERE "end" > $since::TIMESTAMP AND "end" <= $head_until::TIMESTAMP
UNION ALL
SELECT * FROM tool_calls WHERE "end" > $tail_since::TIMESTAMP AND "end" <= $until::TIMESTAMP
UNION ALL
SELECT * FROM tool_calls
WHERE "end" > $dirty_since::TIMESTAMP AND "end" <= $dirty_until::TIMESTAMP
  AND time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND)
      IN (SELECT unnest($dirty_hours::TIMESTAMP[]))
