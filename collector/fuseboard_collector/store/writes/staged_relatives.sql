-- What may stand beside the foreign spans of tools of the traces that are due: calls that are
-- stored, ours or others' whose spans have been deleted; our attempts; context.
SELECT trace_id, instrumentation IS NOT NULL AND instrumentation <> 'fuseboard' AS is_foreign_call,
       span_id, parent_span_id, epoch_us("start") AS "start", epoch_us("end") AS "end",
       tool AS own_tool, session, agent, http_status, NULL::VARCHAR AS operation
FROM tool_calls
SEMI JOIN due USING (trace_id)
WHERE received_at >= $since::TIMESTAMP
UNION ALL
SELECT trace_id, false, span_id, call_span_id, epoch_us("start"),
       epoch_us("start") + round_even(duration_seconds * 1e6, 0)::BIGINT,
       NULL, NULL, NULL, http_status, NULL
FROM attempt_rows
SEMI JOIN due USING (trace_id)
WHERE received_at >= $since::TIMESTAMP
UNION ALL
SELECT trace_id, false, span_id, parent_span_id, epoch_us("start"),
       epoch_us("start") + round_even(duration_seconds * 1e6, 0)::BIGINT,
       NULL, session, agent, http_status, operation
FROM spans
SEMI JOIN due USING (trace_id)
WHERE received_at >= $since::TIMESTAMP
LIMIT $most::BIGINT;
