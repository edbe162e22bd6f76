-- Replace the evaluator's memory; both statements commit together.
DELETE FROM alert_memory;
INSERT INTO alert_memory VALUES ($saved_at::TIMESTAMP, $document::VARCHAR::JSON);
