SELECT span + INTERVAL 1 MICROSECOND AS moment, tool, region,
       NULL AS error_class, step, NULL AS length, lengths, weight
FROM (SELECT span, tool, region, step, weight, lengths FROM @these_h
      -- include page_of_hours
      -- include page_with_sixes of @these_6h by span, tool, region, step, weight, lengths
     ) AS rolled
