-- Failed attempts by class and by their number within the call; what retries are spent on.
-- The window is over the end of attempts. Parameters: since, until, tools, classes, regions.
SELECT COALESCE(error_class, 'unclassified') AS error_class,
       least(number, 10) AS number,
       COUNT(*) AS failures
FROM attempts
WHERE "start" + to_microseconds((duration_seconds * 1000000)::BIGINT) > $since::TIMESTAMP
  AND "start" + to_microseconds((duration_seconds * 1000000)::BIGINT) <= $until::TIMESTAMP
  AND result = 'failure'
  AND error_class IS NOT NULL  -- one that was cut short (cancelled, left) failed in nothing
  AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
  AND ($regions::VARCHAR[] IS NULL
       OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
  AND ($classes::VARCHAR[] IS NULL
       OR list_contains($classes::VARCHAR[], COALESCE(error_class, 'unclassified')))
GROUP BY 1, 2
ORDER BY 1, 2;
