-- Single calls at one upstream, newest first: those that failed, or all. No payload columns.
-- Parameters: since, until, tools, classes, regions, upstream, kind ('faults' or 'all'), row_limit (at
-- most 1000).
SELECT "end", tool, place AS region, outcome, error_class, error_type, classifier_id, http_status,
       @cut(error_message, 200) AS error_message, attempts, duration_seconds, backoff_seconds,
       layer, breaker_state, result_source, args_hash, upstream, service, trace_id, span_id
FROM (
    -- include page_judged_rows
) AS judged_rows
WHERE upstream = $upstream::VARCHAR
  AND ($kind::VARCHAR <> 'faults' OR error_weight > 0)
ORDER BY "end" DESC, span_id
LIMIT least($row_limit::BIGINT, 1000);
