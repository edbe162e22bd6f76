-- Failed attempts by class and by their number within the call; what retries are spent on.
-- The window is over the end of attempts. Parameters: since, until, tools, classes, regions.
SELECT COALESCE(error_class, 'unclassified') AS error_class,
       least(number, 10) AS number,
       COUNT(*) AS failures
FROM attempts
WHERE @later("start", duration_seconds) > $since::TIMESTAMP
  AND @later("start", duration_seconds) <= $until::TIMESTAMP
  AND result = 'failure'
  AND error_class IS NOT NULL  -- one that was cut short (cancelled, left) failed in nothing
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
  AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
GROUP BY 1, 2
ORDER BY 1, 2;
