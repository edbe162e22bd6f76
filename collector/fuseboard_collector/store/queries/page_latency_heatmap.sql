-- Calls per bucket of time and of latency. Latency steps are powers of two, two per octave: step n
-- holds 2^(n/2) up to 2^((n+1)/2) milliseconds; faster than 1 ms is step 0.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT make_timestamp(((epoch_us("end") - 1) // $bucket_us::BIGINT) * $bucket_us::BIGINT)
           AS bucket,
       greatest(0, floor(2 * log2(greatest(duration_seconds, 0.001) * 1000)))::INTEGER AS step,
       SUM(weight) AS calls
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
  AND ($regions::VARCHAR[] IS NULL
       OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
  AND ($classes::VARCHAR[] IS NULL OR list_contains($classes::VARCHAR[], error_class))
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 20000;
