SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       @step(duration_seconds, 8)::SMALLINT AS step,
       duration_seconds AS length, NULL::DOUBLE[] AS lengths, weight
FROM (
    -- include page_raw_attempts
) AS raw_attempts
UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, COALESCE(region, 'unknown') AS region,
       NULL AS error_class, step, NULL AS length, lengths, weight
FROM (SELECT span, tool, region, step, weight, lengths FROM attempt_durations_h
      -- include page_of_hours
      -- include page_with_sixes of attempt_durations_6h by span, tool, region, step, weight, lengths
     ) AS rolled
