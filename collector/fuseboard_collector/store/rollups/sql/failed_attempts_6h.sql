SELECT time_bucket(INTERVAL 6 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span,
       tool, COALESCE(region, 'unknown') AS region, error_class,
       least(number, 10)::SMALLINT AS number, SUM(weight) AS weight
FROM attempts
-- include of_the_span
  AND result = 'failure' AND error_class IS NOT NULL
GROUP BY ALL
ORDER BY span, tool, region;
