UNION ALL
SELECT @keys FROM @these
WHERE "end" > $dirty_since::TIMESTAMP AND "end" <= $dirty_until::TIMESTAMP
  AND time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND)
      IN (SELECT unnest($dirty_hours::TIMESTAMP[]))
