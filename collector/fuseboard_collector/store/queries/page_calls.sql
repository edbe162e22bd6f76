-- Single calls, newest first (slowest first for kind 'slow'). kind: 'all', 'faults', 'retried' or
-- 'slow'. No payload columns. Parameters: since, until, tools, classes, regions, kind, args_hash
-- (NULL = any), row_limit (at most 1000).
SELECT "end", tool, COALESCE(region, 'unknown') AS region, outcome, error_class, error_type,
       classifier_id, http_status, @cut(error_message, 200) AS error_message, attempts,
       duration_seconds, backoff_seconds, layer, breaker_state, result_source, args_hash,
       upstream, service, trace_id, span_id
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
  AND @among($classes::VARCHAR[],
             CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
                  ELSE error_class END)
  AND ($args_hash::VARCHAR IS NULL OR args_hash = $args_hash::VARCHAR)
  AND CASE $kind::VARCHAR
          WHEN 'faults' THEN error_class IS NOT NULL OR outcome IN ('error', 'rejected')
          WHEN 'retried' THEN attempts >= 2
          ELSE TRUE
      END
  -- include page_calls_bound
ORDER BY
    -- include page_calls_order
LIMIT least($row_limit::BIGINT, 1000);
