SELECT tool, COALESCE(region, 'unknown') AS region, error_class,
       least(number, 10)::SMALLINT AS number, weight
FROM (
    -- include page_raw_attempts
) AS raw_attempts
WHERE result = 'failure'
  AND error_class IS NOT NULL  -- one that was cut short (cancelled, left) failed in nothing
-- include page_rolled_failed_attempts
