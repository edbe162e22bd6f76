SELECT span, breaker, instance, tool, region, upstream, first_time, first_from, last_time,
       last_to, @item(why, 1) AS reason, @item(why, 2) AS failure_ratio,
       @item(why, 3) AS error_class
FROM (SELECT span, breaker, instance, MIN(tool) AS tool, MIN(region) AS region,
             MIN(upstream) AS upstream, MIN(time) AS first_time,
             @oldest(from_state, (time, received_at)) AS first_from, MAX(time) AS last_time,
             @newest(to_state, (time, received_at)) AS last_to,
             @newest((reason, failure_ratio, error_class), (time, received_at)) AS why
      FROM @these
      GROUP BY span, breaker, instance) AS grouped
