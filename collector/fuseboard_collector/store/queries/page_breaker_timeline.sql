-- Stretches of one state per breaker within the window, worst state over processes. Unknown where
-- no process that has the breaker had given a sign yet or any more, and where one fell silent with
-- its breaker not closed while no other's is worse. A stretch that began before the window is cut
-- at its start, the present one ends at its end. Parameters: since, until, tools, regions, breakers
-- (their names).
WITH
-- include page_breaker_stretches
SELECT places.breaker AS breaker, places.tool AS tool, places.region AS region,
       CASE severity WHEN 4 THEN 'isolated' WHEN 3 THEN 'open' WHEN 2 THEN 'half_open'
                     WHEN 1 THEN 'unknown' ELSE 'closed' END AS state,
       stretches.began AS began, stretches.ended AS ended
FROM stretches
JOIN (SELECT place, MIN(breaker) AS breaker, MIN(tool) AS tool, MIN(region) AS region
      FROM numbered
      GROUP BY place) AS places ON places.place = stretches.place
ORDER BY stretches.place, stretches.began
LIMIT 5000;
