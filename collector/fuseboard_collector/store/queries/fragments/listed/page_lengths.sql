SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       COALESCE(step, @step(duration_seconds, 8))::SMALLINT AS step,
       duration_seconds AS length, NULL::DOUBLE[] AS lengths, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, COALESCE(region, 'unknown') AS region,
       NULL AS error_class, step, NULL AS length, lengths, weight
FROM (SELECT span, tool, region, step, weight, lengths FROM durations_h
      -- include page_of_hours
      -- include page_with_sixes of durations_6h by span, tool, region, step, weight, lengths
     ) AS rolled
