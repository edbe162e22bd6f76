SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span,
       framework, instrumentation, tool, COALESCE(region, 'unknown') AS region, outcome,
       error_class,
       -- include call_sums
FROM tool_calls
-- include of_the_span
GROUP BY ALL
ORDER BY span, tool, region, outcome, error_class;
