-- One row a day and breaker, with what its steps come to since the day began.
WITH moves AS (
    -- include breaker_moves_of_days
),
steps AS (
    -- include breaker_steps of moves
),
summed AS (
    SELECT span, breaker, moment, closed::BIGINT AS closed, held::BIGINT AS held,
           (SUM(closed) OVER ordered)::BIGINT AS closed_so_far,
           (SUM(held) OVER ordered)::BIGINT AS held_so_far
    FROM steps
    WINDOW ordered AS (PARTITION BY span, breaker ORDER BY moment)
)
SELECT span, breaker,
       list({'moment': moment, 'closed': closed, 'held': held, 'closed_so_far': closed_so_far,
             'held_so_far': held_so_far} ORDER BY moment) AS steps
FROM summed
GROUP BY span, breaker;
