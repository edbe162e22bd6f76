SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span,
       tool, COALESCE(region, 'unknown') AS region,
       COALESCE(error_class, 'unclassified') AS error_class, classifier_id, error_type,
       http_status, SUM(weight) AS weight, MAX("end") AS last_end
FROM tool_calls
-- include of_the_span
  AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
GROUP BY ALL
ORDER BY span, tool, region;
