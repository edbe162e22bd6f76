-- So that what was rolled up need not be sorted again, sums run within a day and begin with what
-- the days before come to.
dated AS MATERIALIZED (
    SELECT greatest(@bucket(moment, 86400000000), $since::TIMESTAMP) AS span, place, moment,
           closed::BIGINT AS closed, held::BIGINT AS held
    FROM events
),
days AS MATERIALIZED (
    SELECT span, place, breaker, is_plain, is_rolled, row_number() OVER ordered AS number,
           (SUM(closed) OVER ordered)::BIGINT - closed AS closed_before,
           (SUM(held) OVER ordered)::BIGINT - held AS held_before,
           -- The same without the days that are summed up anew.
           (SUM(closed) FILTER (WHERE is_plain) OVER ordered)::BIGINT AS closed_base,
           (SUM(held) FILTER (WHERE is_plain) OVER ordered)::BIGINT AS held_base
    FROM (SELECT span, place, MIN(breaker) AS breaker, SUM(closed)::BIGINT AS closed,
                 SUM(held)::BIGINT AS held, bool_and(is_kept) AS is_plain,
                 bool_or(is_kept) AS is_rolled
          FROM (SELECT span, place, NULL AS breaker, closed, held, FALSE AS is_kept FROM dated
                UNION ALL
                SELECT span, place, kept.breaker,
                       @closed_in(last_to) - @closed_in(first_from),
                       @held_in(last_to) - @held_in(first_from), TRUE
                FROM (SELECT * FROM breakers_d
                      -- include page_of_kept_days
                        AND span >= $since::TIMESTAMP
                        AND @among($tools::VARCHAR[], tool)
                        AND @among($regions::VARCHAR[], region)) AS kept
                JOIN (SELECT DISTINCT breaker, place FROM numbered) AS places
                    ON places.breaker = kept.breaker) AS parts
          GROUP BY span, place) AS sums
    WINDOW ordered AS (ORDER BY place, span)
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
                              AND span >= $since::TIMESTAMP) AS kept
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
                  AND span >= $since::TIMESTAMP) AS kept
          JOIN days ON days.span = kept.span AND days.breaker = kept.breaker
          WHERE is_plain) AS kept_plain
)
