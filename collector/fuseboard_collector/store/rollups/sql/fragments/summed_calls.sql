       SUM(weight) AS weight,
       SUM(weight_attempted) AS weight_attempted,
       SUM(weight_retried) AS weight_retried,
       SUM(weight_first) AS weight_first,
       SUM(attempts_sum) AS attempts_sum,
       SUM(attempt_sum) AS attempt_sum,
       SUM(backoff_sum) AS backoff_sum,
       SUM(duration_sum) AS duration_sum,
       MAX(duration_max) AS duration_max,
       MAX(last_end) AS last_end
FROM @these
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY span, tool, region, outcome, error_class
