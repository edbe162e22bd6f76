UNION ALL
SELECT place, step.moment, step.closed, step.held, closed_before + step.closed_so_far,
       held_before + step.held_so_far
FROM (SELECT place, closed_before, held_before, unnest(steps) AS step
      FROM breaker_steps_d
      JOIN days ON days.span = breaker_steps_d.span AND days.breaker = breaker_steps_d.breaker
      WHERE days.is_rolled = 1 AND has_events = 0) AS kept
