SELECT span, breaker, time AS moment,
       SUM(@closed_in(to_state) - @closed_in(was)) AS closed,
       SUM(@held_in(to_state) - @held_in(was)) AS held
FROM (SELECT span, breaker, time, to_state,
             CASE WHEN breaker = breaker_before AND instance = instance_before
                       AND span = span_before
                  THEN state_before ELSE from_state END AS was
      FROM (SELECT span, breaker, instance, time, from_state, to_state,
                   -- Without a partition, which one engine takes long to set up.
                   lag(span) OVER ordered AS span_before,
                   lag(breaker) OVER ordered AS breaker_before,
                   lag(instance) OVER ordered AS instance_before,
                   lag(to_state) OVER ordered AS state_before
            FROM @these
            WINDOW ordered AS (ORDER BY breaker, instance, time, received_at)) AS following
     ) AS changing
GROUP BY span, breaker, time
