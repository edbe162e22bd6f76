-- Single calls, newest first (slowest first for kind 'slow'). kind: 'all', 'faults', 'retried' or
-- 'slow'. No payload columns. Parameters: since, until, tools, classes, regions, kind, args_hash
-- (NULL = any), row_limit (at most 1000).
SELECT "end", tool, COALESCE(region, 'unknown') AS region, outcome, error_class, error_type,
       classifier_id, http_status, left(error_message, 200) AS error_message, attempts,
       duration_seconds, backoff_seconds, layer, breaker_state, result_source, args_hash,
       upstream, service, trace_id, span_id
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
  AND ($regions::VARCHAR[] IS NULL
       OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
  AND ($classes::VARCHAR[] IS NULL
       OR (error_class IS NOT NULL AND list_contains($classes::VARCHAR[], error_class))
       OR (error_class IS NULL AND outcome IN ('error', 'rejected')
           AND list_contains($classes::VARCHAR[], 'unclassified')))
  AND ($args_hash::VARCHAR IS NULL OR args_hash = $args_hash::VARCHAR)
  AND CASE $kind::VARCHAR
          WHEN 'faults' THEN error_class IS NOT NULL OR outcome IN ('error', 'rejected')
          WHEN 'retried' THEN attempts >= 2
          ELSE TRUE
      END
ORDER BY CASE WHEN $kind::VARCHAR = 'slow' THEN duration_seconds ELSE 0 END DESC,
         "end" DESC, span_id
LIMIT least($row_limit::BIGINT, 1000);
