SELECT span, breaker, instance, tool, region, upstream, first_time, first_from, last_time,
       @item(newest, 1) AS last_to, @item(newest, 2) AS reason, @item(newest, 3) AS failure_ratio,
       @item(newest, 4) AS error_class
FROM (SELECT span, breaker, instance, MIN(tool) AS tool, MIN(region) AS region,
             MIN(upstream) AS upstream, MIN(time) AS first_time,
             @oldest(from_state, (time, received_at)) AS first_from, MAX(time) AS last_time,
             @newest((to_state, reason, failure_ratio, error_class), (time, received_at)) AS newest
      FROM @these
      GROUP BY span, breaker, instance) AS grouped
