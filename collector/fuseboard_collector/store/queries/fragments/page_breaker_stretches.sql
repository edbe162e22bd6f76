-- Every change adds to the numbers of processes in each state; the running sum tells which state is
-- the worst. At the window's end the numbers of a breaker are back at none, so that no sum has to
-- begin anew. (Each mention of an expression costs one engine the analysis of all below it.)
-- include page_breaker_evidence
,
numbered AS MATERIALIZED (
    -- include page_breaker_numbers
),
-- What each process's breaker did, by day, states as numbers; one row without times where it never
-- changed.
chain AS MATERIALIZED (
    SELECT place, span, began, ended, is_hint, first_time, last_time,
           COALESCE(first_held, 0) AS first_held, COALESCE(last_held, 0) AS last_held,
           CASE WHEN lag(member, 1, 0) OVER ordered = member
                THEN lag(last_held, 1, 0) OVER ordered ELSE -1 END AS held_before,
           CASE WHEN lead(member, 1, 0) OVER ordered = member
                THEN lead(first_time) OVER ordered END AS next_time,
           lead(member, 1, 0) OVER ordered <> member AS is_last
    FROM numbered
    LEFT JOIN (SELECT breaker, instance, span, first_time, @held_in(first_from) AS first_held,
                      last_time, @held_in(last_to) AS last_held, 0 AS is_hint
               FROM stints
               UNION ALL
               SELECT breaker, instance, NULL, time, @held_in(from_state), time,
                      @held_in(to_state), 1 AS is_hint
               FROM hints) AS parts
        ON parts.breaker = numbered.breaker AND parts.instance = numbered.instance
    WINDOW ordered AS (ORDER BY member, last_time)
),
window_moves AS (
    SELECT span, place AS breaker, member AS instance, time, received_at, from_state, to_state
    FROM chosen_moves
    JOIN numbered ON numbered.breaker = chosen_moves.breaker
        AND numbered.instance = chosen_moves.instance
    WHERE time > $since::TIMESTAMP
),
-- When processes begin, end, and do what was not rolled up.
events AS MATERIALIZED (
    SELECT place, moment, SUM(closed) AS closed, SUM(held) AS held
    FROM (
        SELECT place,
               CASE part WHEN 1 THEN CASE WHEN last_time <= $since::TIMESTAMP
                                          THEN $since::TIMESTAMP
                                          ELSE greatest(began, $since::TIMESTAMP) END
                         WHEN 2 THEN first_time
                         WHEN 3 THEN ended
                         WHEN 4 THEN $until::TIMESTAMP
                         ELSE $since::TIMESTAMP END AS moment,
               CASE part WHEN 1 THEN @none(CASE WHEN last_time <= $since::TIMESTAMP
                                                THEN last_held ELSE first_held END)
                         -- Where a report got lost, a day begins otherwise than the last ended.
                         WHEN 2 THEN CASE WHEN held_before < 0 THEN 0
                                          ELSE @none(first_held) - @none(held_before) END
                                     + is_hint * (@none(last_held) - @none(first_held))
                         WHEN 3 THEN - @none(last_held)
                         ELSE 0 END AS closed,
               CASE part WHEN 1 THEN CASE WHEN last_time <= $since::TIMESTAMP
                                          THEN last_held ELSE first_held END
                         WHEN 2 THEN CASE WHEN held_before < 0 THEN 0
                                          ELSE first_held - held_before END
                                     + is_hint * (last_held - first_held)
                         WHEN 3 THEN 1 - @none(last_held) - last_held
                         WHEN 4 THEN @none(last_held) - 1
                         ELSE 0 END AS held
        -- On most days it only goes on.
        FROM (SELECT * FROM chain
              WHERE is_last OR is_hint = 1 OR held_before <> first_held
                 OR last_time <= $since::TIMESTAMP AND next_time > $since::TIMESTAMP) AS turning
        CROSS JOIN (SELECT 1 AS part UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
                    UNION ALL SELECT 5) AS parts
        WHERE CASE part
              WHEN 1 THEN CASE WHEN last_time <= $since::TIMESTAMP
                               THEN is_last OR next_time > $since::TIMESTAMP
                               ELSE held_before < 0 END
              WHEN 2 THEN first_time > $since::TIMESTAMP
                          AND (is_hint = 1 OR held_before >= 0 AND held_before <> first_held)
              ELSE is_last END
        UNION ALL
        SELECT breaker AS place, moment, closed, held
        FROM (
            -- include breaker_steps of window_moves
        ) AS moved
    ) AS happenings
    GROUP BY place, moment
),
-- include page_breaker_sums
,
turns AS (
    SELECT place, moment, @severity(closed_now, held_now) AS severity
    FROM steps
    WHERE moment < $until::TIMESTAMP
      AND (moment = $since::TIMESTAMP
           OR @severity(closed_now, held_now)
              <> @severity(closed_now - closed, held_now - held))
),
stretches AS (
    SELECT place, severity, moment AS began,
           CASE WHEN lead(place, 1, 0) OVER ordered = place
                THEN lead(moment, 1, $until::TIMESTAMP) OVER ordered
                ELSE $until::TIMESTAMP END AS ended
    FROM turns
    WINDOW ordered AS (ORDER BY place, moment)
)
