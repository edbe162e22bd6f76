UNION ALL
-- Of all days before the window the last alone matters.
SELECT $since::TIMESTAMP - INTERVAL 1 DAY, breaker, instance, tool, region, upstream, first_time,
       first_from, last_time, last_to, @item(why, 1), @item(why, 2), @item(why, 3)
FROM (SELECT breaker, instance, MIN(tool) AS tool, MIN(region) AS region,
             MIN(upstream) AS upstream, MIN(first_time) AS first_time, '' AS first_from,
             MAX(last_time) AS last_time,
             @newest(last_to, last_time) AS last_to,
             @newest((reason, failure_ratio, error_class), last_time) AS why
      FROM breakers_d
      -- include page_of_kept_days
        AND span < $since::TIMESTAMP
        AND @among($tools::VARCHAR[], tool)
        AND @among($regions::VARCHAR[], region)
        -- include page_of_breakers of breakers_d
      GROUP BY breaker, instance) AS earlier
-- include page_whole_stints
