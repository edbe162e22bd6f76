UNION ALL
SELECT tool, region, upstream, instance
FROM (SELECT tool, region, upstream, instance FROM guards_h
      -- include page_of_hours
      -- include page_with_days of guards_d by tool, region, upstream, instance
     ) AS rolled
