UNION ALL
SELECT tool, region, error_class AS class_of_fault, classifier_id, error_type, http_status, weight,
       last_end
FROM (SELECT * FROM faults_h
      -- include page_of_hours
      -- include page_with_sixes of faults_6h by *
      -- include page_with_days of faults_d by *
     ) AS rolled
