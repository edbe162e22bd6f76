UNION ALL
SELECT environment, agent, tool, COALESCE(region, 'unknown') AS region, args_hash,
       error_class AS class_of_fault, weight, last_end
FROM arguments_6h
WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
        AND NOT list_contains($six_gaps::TIMESTAMP[], span)
