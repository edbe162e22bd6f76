-- Failed attempts by class and by their number within the call; what retries are spent on.
-- The window is over the end of attempts. Parameters: since, until, tools, classes, regions.
SELECT error_class, number, SUM(weight) AS failures
FROM (
    -- include page_failed_attempts
) AS failed
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
  AND @among($classes::VARCHAR[], error_class)
GROUP BY 1, 2
ORDER BY 1, 2;
