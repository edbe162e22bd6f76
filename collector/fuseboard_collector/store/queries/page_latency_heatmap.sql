-- Calls per bucket of time and of latency. Latency steps are powers of two, two per octave: step n
-- holds 2^(n/2) up to 2^((n+1)/2) milliseconds; faster than 1 ms is step 0.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT @bucket("end", $bucket_us::BIGINT) AS bucket,
       greatest(0, floor(2 * log2(greatest(duration_seconds, 0.001) * 1000)))::INTEGER AS step,
       SUM(weight) AS calls
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
  AND @among($classes::VARCHAR[], error_class)
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 20000;
