-- So that what was rolled up need not be sorted again, sums run within a day and begin with what
-- the days before come to.
dated AS MATERIALIZED (
    SELECT greatest(@bucket(moment, 86400000000), $since::TIMESTAMP) AS span, place, moment,
           closed::BIGINT AS closed, held::BIGINT AS held
    FROM events
),
-- Of each breaker; in a list for the sake of joins, too.
days AS MATERIALIZED (
    SELECT unnest(list(day), max_depth := 2)
    FROM (SELECT span, sums.place, breaker, is_plain, is_rolled, row_number() OVER ordered AS number,
                 (SUM(closed) OVER ordered)::BIGINT - closed AS closed_before,
                 (SUM(held) OVER ordered)::BIGINT - held AS held_before,
                 -- The same without the days that are summed up anew.
                 (SUM(closed) FILTER (WHERE is_plain) OVER ordered)::BIGINT AS closed_base,
                 (SUM(held) FILTER (WHERE is_plain) OVER ordered)::BIGINT AS held_base
          FROM (SELECT span, place, SUM(closed)::BIGINT AS closed, SUM(held)::BIGINT AS held,
                       bool_and(is_kept) AS is_plain, bool_or(is_kept) AS is_rolled
                FROM (SELECT span, place, closed, held, FALSE AS is_kept FROM dated
                      UNION ALL
                      SELECT span, place, @none(last_held) - @none(first_held),
                             last_held - first_held, TRUE
                      FROM chain
                      -- include page_of_kept_days
                        AND span >= $kept_since::TIMESTAMP) AS parts
                GROUP BY span, place) AS sums
          JOIN (SELECT DISTINCT place, breaker FROM numbered) AS places ON places.place = sums.place
          WINDOW ordered AS (ORDER BY sums.place, span)) AS day
),
steps AS (
    SELECT place, moment, closed, held,
           COALESCE(closed_base, 0) + (SUM(closed) OVER ordered)::BIGINT AS closed_now,
           COALESCE(held_base, 0) + (SUM(held) OVER ordered)::BIGINT AS held_now
    FROM (SELECT number, MIN(place) AS place, moment, SUM(closed)::BIGINT AS closed,
                 SUM(held)::BIGINT AS held, MIN(closed_base) AS closed_base,
                 MIN(held_base) AS held_base
          FROM (SELECT number, dated.place, moment, dated.closed, dated.held, closed_base, held_base
                FROM dated
                JOIN days ON days.span = dated.span AND days.place = dated.place
                UNION ALL
                SELECT number, place, step.moment, step.closed, step.held, closed_base, held_base
                FROM (SELECT number, place, closed_base, held_base, unnest(steps) AS step
                      FROM (SELECT * FROM breaker_steps_d
                            -- include page_of_kept_days
                              AND span >= $kept_since::TIMESTAMP
                              -- include page_of_breakers of breaker_steps_d
                           ) AS kept
                      JOIN days ON days.span = kept.span AND days.breaker = kept.breaker
                      WHERE is_rolled AND NOT is_plain) AS kept_anew) AS parts
          GROUP BY number, moment) AS summed
    WINDOW ordered AS (ORDER BY number, moment)
    UNION ALL
    SELECT place, step.moment, step.closed, step.held, closed_before + step.closed_so_far,
           held_before + step.held_so_far
    FROM (SELECT place, closed_before, held_before, unnest(steps) AS step
          FROM (SELECT * FROM breaker_steps_d
                -- include page_of_kept_days
                  AND span >= $kept_since::TIMESTAMP
                  -- include page_of_breakers of breaker_steps_d
               ) AS kept
          JOIN days ON days.span = kept.span AND days.breaker = kept.breaker
          WHERE is_plain) AS kept_plain
)
