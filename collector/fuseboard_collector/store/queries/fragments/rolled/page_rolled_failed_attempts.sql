UNION ALL
SELECT tool, COALESCE(region, 'unknown') AS region, error_class, number, weight
FROM failed_attempts_6h
WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
        AND NOT list_contains($six_gaps::TIMESTAMP[], span)
