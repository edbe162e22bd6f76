UNION ALL
SELECT COALESCE(instance, '') AS instance, MIN(first_start), MAX(last_end)
FROM (SELECT * FROM callers_h
      -- include page_of_hours
      UNION ALL
      SELECT * FROM callers_d
      -- include page_of_days
     ) AS rolled
GROUP BY 1
