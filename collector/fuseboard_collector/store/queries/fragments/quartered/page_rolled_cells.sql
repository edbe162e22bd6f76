UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, last_end, framework, instrumentation, tool,
       region, outcome, error_class, weight, weight_attempted,
       weight_retried, weight_first, attempts_sum, attempt_sum, backoff_sum, duration_sum,
       duration_max
FROM calls_15m
-- include page_of_quarters
