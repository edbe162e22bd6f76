UNION ALL
SELECT environment, agent, tool, COALESCE(region, 'unknown') AS region, error_class, number, weight
FROM failed_attempts_6h
WHERE span IN (SELECT unnest($sixes::TIMESTAMP[]))
