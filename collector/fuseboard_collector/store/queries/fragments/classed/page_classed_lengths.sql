SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       @step(duration_seconds, 8)::SMALLINT AS length, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, COALESCE(region, 'unknown') AS region,
       error_class, step AS length, weight
FROM (SELECT * FROM fault_durations_h
      WHERE span >= $fine_since::TIMESTAMP AND span < $fine_until::TIMESTAMP
        AND span IN (SELECT unnest($hours::TIMESTAMP[]))
      UNION ALL
      SELECT * FROM fault_durations_6h
      WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
        AND NOT list_contains($six_gaps::TIMESTAMP[], span)) AS rolled
