-- Stretches of one state per breaker within the window, worst state over processes. Unknown where
-- no process that has the breaker had given a sign yet or any more, and where one fell silent with
-- its breaker not closed while no other's is worse. A stretch that began before the window is cut
-- at its start, the present one ends at its end. Parameters: since, until, tools, regions.
WITH
-- include page_breaker_evidence
,
steps AS MATERIALIZED (
    SELECT members.breaker, members.instance, members.began AS life_began,
           members.ended AS life_ended, changes.time, changes.from_state, changes.to_state,
           row_number() OVER ordered AS place,
           lead(changes.time) OVER ordered AS next_time
    FROM members
    LEFT JOIN changes
        ON changes.breaker = members.breaker AND changes.instance = members.instance
    WINDOW ordered AS (PARTITION BY members.breaker, members.instance
                       ORDER BY changes.time, changes.received_at)
),
-- Up to three of each step: before the first change, from a change to the next, and after the
-- end of the process. (Not a union of three: one engine would work out the steps three times.)
stretches AS MATERIALIZED (
    SELECT breaker,
           CASE part WHEN 1 THEN life_began WHEN 2 THEN time ELSE life_ended END AS began,
           CASE part WHEN 1 THEN COALESCE(time, life_ended)
                     WHEN 2 THEN COALESCE(next_time, life_ended)
                     ELSE $until::TIMESTAMP END AS ended,
           CASE part WHEN 1 THEN COALESCE(from_state, 'closed')
                     WHEN 2 THEN to_state
                     ELSE 'unknown' END AS state
    FROM steps
    CROSS JOIN (SELECT 1 AS part UNION ALL SELECT 2 UNION ALL SELECT 3) AS parts
    WHERE CASE part WHEN 1 THEN place = 1
                    WHEN 2 THEN time IS NOT NULL
                    ELSE next_time IS NULL AND to_state <> 'closed' END
),
edges AS (
    SELECT DISTINCT breaker,
           greatest(CASE part WHEN 1 THEN began WHEN 2 THEN ended ELSE $since::TIMESTAMP END,
                    $since::TIMESTAMP) AS moment
    FROM stretches
    CROSS JOIN (SELECT 1 AS part UNION ALL SELECT 2 UNION ALL SELECT 3) AS sides
),
states AS MATERIALIZED (
    SELECT edges.breaker, edges.moment,
           COALESCE(MAX(CASE state WHEN 'isolated' THEN 4 WHEN 'open' THEN 3
                                   WHEN 'half_open' THEN 2 WHEN 'closed' THEN 0 ELSE 1 END),
                    1) AS severity
    FROM edges
    LEFT JOIN stretches
        ON stretches.breaker = edges.breaker
        AND stretches.began <= edges.moment AND edges.moment < stretches.ended
    WHERE edges.moment < $until::TIMESTAMP
    GROUP BY 1, 2
),
turns AS (
    SELECT *, lag(severity, 1, 9) OVER (PARTITION BY breaker ORDER BY moment) AS severity_before
    FROM states
),
places AS (SELECT breaker, MIN(tool) AS tool, MIN(region) AS region FROM members GROUP BY breaker)
SELECT turns.breaker, places.tool, places.region,
       CASE severity WHEN 4 THEN 'isolated' WHEN 3 THEN 'open' WHEN 2 THEN 'half_open'
                     WHEN 1 THEN 'unknown' ELSE 'closed' END AS state,
       moment AS began,
       lead(moment, 1, $until::TIMESTAMP) OVER (PARTITION BY turns.breaker ORDER BY moment)
           AS ended
FROM turns
JOIN places ON places.breaker = turns.breaker
WHERE severity_before <> severity
ORDER BY turns.breaker, began
LIMIT 5000;
