steps AS (
    SELECT place, moment, closed, held, SUM(closed) OVER ordered AS closed_now,
           SUM(held) OVER ordered AS held_now
    FROM events
    WINDOW ordered AS (ORDER BY place, moment)
)
