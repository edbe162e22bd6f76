UNION ALL
SELECT tool, region, error_class, number, weight
FROM (SELECT * FROM failed_attempts_6h
      -- include page_of_sixes
      UNION ALL
      SELECT * FROM failed_attempts_d
      -- include page_of_days
     ) AS rolled
