SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       @step(duration_seconds, 8)::SMALLINT AS length, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, COALESCE(region, 'unknown') AS region,
       NULL AS error_class, step AS length, weight
FROM (SELECT * FROM durations_h
      -- include page_of_hours
      UNION ALL
      SELECT * FROM durations_6h
      -- include page_of_sixes
      UNION ALL
      SELECT * FROM durations_d
      -- include page_of_days
     ) AS rolled
