UNION ALL
SELECT tool, COALESCE(region, 'unknown') AS region,
       error_class AS class_of_fault, classifier_id, error_type, http_status, weight, last_end
FROM faults_6h
WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
        AND NOT list_contains($six_gaps::TIMESTAMP[], span)
