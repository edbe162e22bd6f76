UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, last_end, framework, instrumentation, tool,
       COALESCE(region, 'unknown') AS region, outcome, error_class, weight, weight_attempted,
       weight_retried, weight_first, attempts_sum, attempt_sum, backoff_sum, duration_sum,
       duration_max
FROM (SELECT * FROM calls_15m
      WHERE span >= $fine_since::TIMESTAMP AND span < $fine_until::TIMESTAMP
        AND span IN (SELECT unnest($quarters::TIMESTAMP[]))
      UNION ALL
      SELECT * FROM calls_6h WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
        AND NOT list_contains($six_gaps::TIMESTAMP[], span)) AS rolled
