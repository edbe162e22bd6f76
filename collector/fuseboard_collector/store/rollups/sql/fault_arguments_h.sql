SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span, tool,
       COALESCE(region, 'unknown') AS region,
       CASE WHEN args_key IS NULL THEN args_hash END AS args_hash, args_key,
       COALESCE(error_class, 'unclassified') AS error_class, SUM(weight) AS weight
FROM tool_calls
-- include of_the_span
  AND args_hash IS NOT NULL AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
GROUP BY ALL
ORDER BY span, tool, region;
