-- Calls per bucket of time and of latency. Latency steps are powers of two, two per octave: step n
-- holds 2^(n/2) up to 2^((n+1)/2) milliseconds; faster than 1 ms is step 0.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket,
       -- include page_heat_step
       AS step,
       SUM(weight) AS calls
FROM (
    -- include page_classed_lengths
) AS all_lengths
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
  AND @among($classes::VARCHAR[], error_class)
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 20000;
