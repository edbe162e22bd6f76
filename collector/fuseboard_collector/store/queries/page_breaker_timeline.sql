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
stretches AS MATERIALIZED (
    SELECT breaker, life_began AS began, COALESCE(time, life_ended) AS ended,
           COALESCE(from_state, 'closed') AS state
    FROM steps
    WHERE place = 1
    UNION ALL
    SELECT breaker, time AS began, COALESCE(next_time, life_ended) AS ended, to_state AS state
    FROM steps
    WHERE time IS NOT NULL
    UNION ALL
    SELECT breaker, life_ended AS began, $until::TIMESTAMP AS ended, 'unknown' AS state
    FROM steps
    WHERE next_time IS NULL AND to_state <> 'closed'
),
edges AS (
    SELECT breaker, greatest(began, $since::TIMESTAMP) AS moment FROM stretches
    UNION
    SELECT breaker, greatest(ended, $since::TIMESTAMP) AS moment FROM stretches
    UNION
    SELECT breaker, $since::TIMESTAMP AS moment FROM members
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
