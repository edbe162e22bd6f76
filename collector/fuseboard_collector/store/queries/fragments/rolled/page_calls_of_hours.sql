UNION ALL
-- Hours keep the arguments of faults alone.
SELECT * FROM tool_calls
WHERE "end" > $hour_since::TIMESTAMP AND "end" <= $hour_until::TIMESTAMP
  AND ("end" <= $hour_hole_since::TIMESTAMP OR "end" > $hour_hole_until::TIMESTAMP)
  AND (len($hour_gaps::TIMESTAMP[]) = 0
       OR NOT list_contains($hour_gaps::TIMESTAMP[],
                            time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND)))
