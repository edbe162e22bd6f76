UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, last_end, framework, instrumentation, tool,
       COALESCE(region, 'unknown') AS region, outcome, error_class, weight, weight_attempted,
       weight_retried, weight_first, attempts_sum, attempt_sum, backoff_sum, duration_sum,
       duration_max
FROM calls_15m
WHERE span >= $hour_since::TIMESTAMP AND span < $hour_until::TIMESTAMP
  AND (span < $hour_hole_since::TIMESTAMP OR span >= $hour_hole_until::TIMESTAMP)
  AND NOT list_contains($hour_gaps::TIMESTAMP[], time_bucket(INTERVAL 1 HOUR, span))
