SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, region,
       NULL AS error_class, step AS length, weight
FROM (SELECT span, tool, region, step, weight FROM @these_h
      -- include page_of_hours
      -- include page_with_sixes of @these_6h by span, tool, region, step, weight
      -- include page_with_days of @these_d by span, tool, region, step, weight
     ) AS rolled
