-- Which spans of some traces are stored already, in whichever table.
-- Parameters: traces.
SELECT trace_id, span_id FROM tool_calls WHERE @one_of(trace_id, $traces::VARCHAR[])
UNION ALL
SELECT trace_id, span_id FROM attempts
WHERE span_id IS NOT NULL AND @one_of(trace_id, $traces::VARCHAR[])
UNION ALL
SELECT trace_id, span_id FROM sightings WHERE @one_of(trace_id, $traces::VARCHAR[])
UNION ALL
SELECT trace_id, span_id FROM spans WHERE @one_of(trace_id, $traces::VARCHAR[]);
