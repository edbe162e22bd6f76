UNION ALL
SELECT tool, COALESCE(region, 'unknown') AS region,
       error_class AS class_of_fault, classifier_id, error_type, http_status, weight, last_end
FROM (SELECT * FROM faults_6h
      -- include page_of_sixes
      UNION ALL
      SELECT * FROM faults_d
      -- include page_of_days
     ) AS rolled
