UNION ALL
SELECT tool, region, args_key, args_hash, error_class AS class_of_fault, weight, last_end
FROM (SELECT * FROM arguments_6h
      -- include page_of_sixes
      UNION ALL
      SELECT * FROM arguments_d
      -- include page_of_days
     ) AS rolled
