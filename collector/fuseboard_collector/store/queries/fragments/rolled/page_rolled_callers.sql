UNION ALL
SELECT COALESCE(instance, '') AS instance, MIN(first_start), MAX(last_end), NULL
FROM (SELECT instance, first_start, last_end FROM callers_h
      -- include page_of_hours
      -- include page_with_days of callers_d by instance, first_start, last_end
     ) AS rolled
GROUP BY 1
