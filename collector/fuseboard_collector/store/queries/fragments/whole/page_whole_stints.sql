UNION ALL
SELECT span, breaker, instance, tool, region, upstream, first_time, first_from, last_time, last_to,
       reason, failure_ratio, error_class
FROM breakers_d
-- include page_of_kept_days
  AND span >= $kept_since::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
  -- include page_of_breakers of breakers_d
