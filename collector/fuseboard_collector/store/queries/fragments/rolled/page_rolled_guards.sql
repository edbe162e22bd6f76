UNION ALL
SELECT tool, region, upstream, instance
FROM (SELECT * FROM guards_h
      -- include page_of_hours
      UNION ALL
      SELECT * FROM guards_d
      -- include page_of_days
     ) AS rolled
