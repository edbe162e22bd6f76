UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, last_end, framework, instrumentation, tool,
       COALESCE(region, 'unknown') AS region, outcome, error_class, weight, weight_attempted,
       weight_retried, weight_first, attempts_sum, attempt_sum, backoff_sum, duration_sum,
       duration_max
FROM calls_15m
WHERE span >= $fine_since::TIMESTAMP AND span < $fine_until::TIMESTAMP
  AND span IN (SELECT unnest($quarters::TIMESTAMP[]))
