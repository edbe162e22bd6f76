UNION ALL
SELECT number, place, step.moment, step.closed, step.held, closed_base, held_base
FROM (SELECT number, place, closed_base, held_base, unnest(steps) AS step
      FROM breaker_steps_d
      JOIN days ON days.span = breaker_steps_d.span AND days.breaker = breaker_steps_d.breaker
      WHERE days.is_rolled = 1 AND has_events = 1) AS kept
