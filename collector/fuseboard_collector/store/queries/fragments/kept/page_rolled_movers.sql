UNION ALL
SELECT instance, MIN(first_time), MAX(last_time), NULL
FROM breakers_d
-- include page_of_kept_days
GROUP BY 1
