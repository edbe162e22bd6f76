SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       @step(duration_seconds, 8)::SMALLINT AS length, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, COALESCE(region, 'unknown') AS region,
       error_class, step AS length, weight
FROM (SELECT * FROM fault_durations_h
      -- include page_of_hours
      -- include page_with_sixes of fault_durations_6h by *
      -- include page_with_days of fault_durations_d by *
     ) AS rolled
