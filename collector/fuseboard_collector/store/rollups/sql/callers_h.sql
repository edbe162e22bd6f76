SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span,
       instance, MIN("start") AS first_start, MAX("end") AS last_end
FROM tool_calls
-- include of_the_span
GROUP BY 1, 2;
