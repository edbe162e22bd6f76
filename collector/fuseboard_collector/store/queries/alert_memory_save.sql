-- Replace the evaluator's memory; both statements commit together.
@forget(alert_memory);
INSERT INTO alert_memory VALUES ($saved_at::TIMESTAMP, @json($document::VARCHAR));
