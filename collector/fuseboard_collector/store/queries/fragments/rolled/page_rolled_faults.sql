UNION ALL
SELECT environment, agent, tool, COALESCE(region, 'unknown') AS region,
       error_class AS class_of_fault, classifier_id, error_type, http_status, weight, last_end
FROM faults_6h
WHERE span IN (SELECT unnest($sixes::TIMESTAMP[]))
