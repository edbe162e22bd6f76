-- Calls per bucket of time and of latency. Latency steps are powers of two, two per octave: step n
-- holds 2^(n/2) up to 2^((n+1)/2) milliseconds; faster than 1 ms is step 0.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
WITH counts AS (
    SELECT @slot(moment, $bucket_us::BIGINT) AS slot,
           -- include page_heat_step
           AS step,
           SUM(weight) AS n
    FROM (
        -- include page_classed_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], error_class)
    GROUP BY 1, 2
)
SELECT @slot_start(slot, $bucket_us::BIGINT) AS bucket, step, n AS calls
FROM counts
ORDER BY 1, 2
LIMIT 20000;
