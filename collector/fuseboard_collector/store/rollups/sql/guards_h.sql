SELECT DISTINCT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span,
       tool, region, upstream, instance
FROM tool_calls
-- include of_the_span
  AND breaker_state IS NOT NULL;
