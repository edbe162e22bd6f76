-- The newest memory of the evaluator.
SELECT saved_at, document::VARCHAR AS document
FROM alert_memory
ORDER BY saved_at DESC
LIMIT 1
