-- Stretches of one state per breaker within the window, worst state over processes. Unknown where
-- no process that has the breaker had given a sign yet or any more, and where one fell silent with
-- its breaker not closed while no other's is worse. A stretch that began before the window is cut
-- at its start, the present one ends at its end. Parameters: since, until, tools, regions.
--
-- Every change adds to the numbers of processes in each state; the running sum tells which is the
-- worst. So that what was rolled up need not be sorted again, sums run within a day and begin with
-- what the days before come to.
WITH
-- include page_breaker_evidence
,
numbered AS MATERIALIZED (
    SELECT breaker, instance, tool, region, began, ended,
           row_number() OVER (ORDER BY breaker, instance) AS member,
           dense_rank() OVER (ORDER BY breaker) AS place
    FROM members
),
-- By process and day, after the last change before the window.
chain AS MATERIALIZED (
    SELECT member, place, is_earlier, first_time, first_from, last_to,
           CASE WHEN lag(member, 1, 0) OVER ordered = member
                THEN lag(last_to, 1, '') OVER ordered ELSE '' END AS before
    FROM (
        SELECT breaker, instance, TRUE AS is_earlier, MAX(time) AS first_time, '' AS first_from,
               MAX(time) AS last_time, @newest(to_state, time) AS last_to
        FROM (SELECT breaker, instance, last_time AS time, last_to AS to_state FROM stints
              UNION ALL
              SELECT breaker, instance, time, to_state FROM hints) AS changes
        WHERE time <= $since::TIMESTAMP
        GROUP BY breaker, instance
        UNION ALL
        SELECT breaker, instance, FALSE AS is_earlier, first_time, first_from, last_time, last_to
        FROM stints
        WHERE last_time > $since::TIMESTAMP
        UNION ALL
        SELECT breaker, instance, FALSE AS is_earlier, time AS first_time, from_state AS first_from,
               time AS last_time, to_state AS last_to
        FROM hints
        WHERE time > $since::TIMESTAMP
    ) AS parts
    JOIN numbered ON numbered.breaker = parts.breaker AND numbered.instance = parts.instance
    WINDOW ordered AS (ORDER BY member, last_time)
),
window_moves AS (
    SELECT span, place AS breaker, member AS instance, time, received_at, from_state, to_state
    FROM chosen_moves
    JOIN numbered ON numbered.breaker = chosen_moves.breaker
        AND numbered.instance = chosen_moves.instance
    WHERE time > $since::TIMESTAMP
),
-- Processes that come and go, and what was not rolled up.
events AS MATERIALIZED (
    SELECT greatest(@bucket(moment, 86400000000), $since::TIMESTAMP) AS span, place, moment,
           SUM(closed) AS closed, SUM(held) AS held
    FROM (
        SELECT place, moment, @closed_in(state) AS closed, @held_in(state) AS held
        FROM (SELECT numbered.place AS place,
                     CASE WHEN firsts.is_earlier THEN $since::TIMESTAMP
                          ELSE greatest(numbered.began, $since::TIMESTAMP) END AS moment,
                     COALESCE(CASE WHEN firsts.is_earlier THEN firsts.last_to
                                   ELSE firsts.first_from END, 'closed') AS state
              FROM numbered
              LEFT JOIN (SELECT * FROM chain WHERE before = '') AS firsts
                  ON firsts.member = numbered.member) AS beginnings
        UNION ALL
        -- At the window's end the number of all is back at none: sums need not begin anew by breaker.
        SELECT place, CASE part WHEN 1 THEN ended ELSE $until::TIMESTAMP END AS moment,
               CASE part WHEN 1 THEN - @closed_in(state) ELSE 0 END AS closed,
               CASE part WHEN 1 THEN was_lost - @held_in(state) ELSE - was_lost END AS held
        FROM (SELECT numbered.place AS place, numbered.ended AS ended,
                     COALESCE(latest.last_state, 'closed') AS state,
                     CASE COALESCE(latest.last_state, 'closed') WHEN 'closed' THEN 0 ELSE 1 END
                         AS was_lost
              FROM numbered
              LEFT JOIN latest ON latest.breaker = numbered.breaker
                  AND latest.instance = numbered.instance) AS endings
        CROSS JOIN (SELECT 1 AS part UNION ALL SELECT 2) AS parts
        UNION ALL
        -- Where a report got lost, a process's day begins otherwise than its day before ended.
        SELECT place, first_time AS moment, @closed_in(first_from) - @closed_in(before) AS closed,
               @held_in(first_from) - @held_in(before) AS held
        FROM chain
        WHERE before <> '' AND before <> first_from
        UNION ALL
        SELECT place, time AS moment, @closed_in(to_state) - @closed_in(from_state) AS closed,
               @held_in(to_state) - @held_in(from_state) AS held
        FROM hints
        JOIN numbered ON numbered.breaker = hints.breaker AND numbered.instance = hints.instance
        WHERE time > $since::TIMESTAMP
        UNION ALL
        SELECT breaker AS place, moment, closed, held
        FROM (
            -- include breaker_steps of window_moves
        ) AS moved
        UNION ALL
        -- Each breaker begins with the window, in whatever state.
        SELECT DISTINCT place, $since::TIMESTAMP AS moment, 0 AS closed, 0 AS held FROM numbered
    ) AS happenings
    GROUP BY 1, 2, 3
),
places AS MATERIALIZED (
    SELECT place, breaker, MIN(tool) AS tool, MIN(region) AS region
    FROM numbered
    GROUP BY place, breaker
),
days AS MATERIALIZED (
    SELECT span, place, breaker, has_events, is_rolled, row_number() OVER ordered AS number,
           CAST(SUM(closed) OVER ordered - closed AS BIGINT) AS closed_before,
           CAST(SUM(held) OVER ordered - held AS BIGINT) AS held_before,
           -- The same without the sums of other days with events.
           CAST(SUM(closed * (1 - has_events)) OVER ordered AS BIGINT) AS closed_base,
           CAST(SUM(held * (1 - has_events)) OVER ordered AS BIGINT) AS held_base
    FROM (SELECT span, parts.place AS place, MIN(breaker) AS breaker, SUM(closed) AS closed,
                 SUM(held) AS held, MAX(is_event) AS has_events, MAX(is_kept) AS is_rolled
          FROM (SELECT span, place, closed, held, 1 AS is_event, 0 AS is_kept FROM events
                -- include page_rolled_nets
               ) AS parts
          JOIN places ON places.place = parts.place
          GROUP BY span, parts.place) AS sums
    WINDOW ordered AS (ORDER BY place, span)
),
steps AS (
    SELECT place, moment, closed, held,
           closed_base + CAST(SUM(closed) OVER ordered AS BIGINT) AS closed_now,
           held_base + CAST(SUM(held) OVER ordered AS BIGINT) AS held_now
    FROM (SELECT number, MIN(place) AS place, moment, CAST(SUM(closed) AS BIGINT) AS closed,
                 CAST(SUM(held) AS BIGINT) AS held, MIN(closed_base) AS closed_base,
                 MIN(held_base) AS held_base
          FROM (SELECT number, days.place AS place, moment, events.closed AS closed,
                       events.held AS held, closed_base, held_base
                FROM events
                JOIN days ON days.span = events.span AND days.place = events.place
                -- include page_rolled_steps
               ) AS parts
          GROUP BY number, moment) AS summed
    WINDOW ordered AS (ORDER BY number, moment)
    -- include page_rolled_turns
),
turns AS MATERIALIZED (
    SELECT place, moment, @severity(closed_now, held_now) AS severity
    FROM steps
    WHERE moment < $until::TIMESTAMP AND (moment = $since::TIMESTAMP
       OR @severity(closed_now, held_now)
          <> @severity(closed_now - closed, held_now - held))
),
-- No more breakers than the rows that are wanted.
wanted AS (
    SELECT place, SUM(n) OVER (ORDER BY place) - n AS rows_before
    FROM (SELECT place, COUNT(*) AS n FROM turns GROUP BY place) AS numbers
)
SELECT places.breaker, places.tool, places.region,
       CASE severity WHEN 4 THEN 'isolated' WHEN 3 THEN 'open' WHEN 2 THEN 'half_open'
                     WHEN 1 THEN 'unknown' ELSE 'closed' END AS state,
       moment AS began,
       lead(moment, 1, $until::TIMESTAMP) OVER (PARTITION BY turns.place ORDER BY moment)
           AS ended
FROM turns
JOIN places ON places.place = turns.place
JOIN wanted ON wanted.place = turns.place
WHERE wanted.rows_before < 5000
ORDER BY places.breaker, began
LIMIT 5000;
