-- Traces that wait for their assembly, as the last process left them.
SELECT trace_id, epoch_us(min(since)) AS since FROM staged_traces GROUP BY trace_id;
