WITH moves AS (
    -- include breaker_moves_of_days
),
stints AS (
    -- include breaker_stints of moves
)
SELECT *,
       (span, breaker) IN (SELECT span, breaker FROM moves GROUP BY span, breaker
                           HAVING MIN(tool) <> MAX(tool) OR MIN(region) <> MAX(region))
           AS is_shared
FROM stints;
