INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM tool_calls
    WHERE received_at >= $since::TIMESTAMP
      AND (trace_id, span_id) IN (SELECT trace_id, span_id FROM gone)
    UNION ALL
    SELECT "end" FROM attempt_rows
    WHERE received_at >= $since::TIMESTAMP
      AND (trace_id, call_span_id) IN (SELECT trace_id, span_id FROM gone)
)
-- include marked_spans
;

-- Rows that foreign spans were assembled to and no longer are.
DELETE FROM tool_calls
WHERE received_at >= $since::TIMESTAMP
  AND (trace_id, span_id) IN (SELECT trace_id, span_id FROM gone);

DELETE FROM attempt_rows
WHERE received_at >= $since::TIMESTAMP
  AND (trace_id, call_span_id) IN (SELECT trace_id, span_id FROM gone);

DELETE FROM spans
WHERE received_at >= $since::TIMESTAMP
  AND (trace_id, span_id) IN (SELECT trace_id, span_id FROM gone);
