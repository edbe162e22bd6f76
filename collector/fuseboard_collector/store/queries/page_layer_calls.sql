-- Single calls that spend a budget because of a layer, newest first; the columns of page_calls.
-- Parameters: since, until, tools, regions, failed_layer (NULL = any), row_limit (at most 1000).
WITH spending AS (
    SELECT "end", tool, COALESCE(region, 'unknown') AS region_name, outcome, error_class,
           error_class AS class_of_call, error_type, classifier_id, classifier_id AS rule,
           http_status, http_status AS status, error_message, attempts, attempts AS tries,
           duration_seconds, backoff_seconds, layer, layer AS decided, breaker_state,
           breaker_state AS entered, result_source, args_hash, upstream, service, trace_id, span_id,
           COALESCE(error_type, '') || ' ' || COALESCE(cause_type, '') AS words
    FROM tool_calls
    -- include page_spending_calls
),
failed AS (
    SELECT *,
           -- include page_failed_layer
           AS failed_in
    FROM spending
    -- include page_spends
)
SELECT "end", tool, region_name AS region, outcome, error_class, error_type, classifier_id,
       http_status, @cut(error_message, 200) AS error_message, attempts, duration_seconds,
       backoff_seconds, layer, breaker_state, result_source, args_hash, upstream, service, trace_id,
       span_id
FROM failed
WHERE $failed_layer::VARCHAR IS NULL OR failed_in = $failed_layer::VARCHAR
ORDER BY "end" DESC, span_id
LIMIT least($row_limit::BIGINT, 1000);
