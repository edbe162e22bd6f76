UNION ALL
SELECT COALESCE(instance, '') AS instance, MIN(first_start), MAX(last_end)
FROM callers_h
WHERE span IN (SELECT unnest($hours::TIMESTAMP[]))
GROUP BY 1
