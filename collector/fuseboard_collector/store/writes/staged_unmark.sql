DELETE FROM staged_traces WHERE trace_id IN (SELECT trace_id FROM due);
