SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, region,
       error_class, step AS length, weight
FROM (SELECT * FROM @these_h
      -- include page_of_hours
      -- include page_with_sixes of @these_6h by *
      -- include page_with_days of @these_d by *
     ) AS rolled
