SELECT @keys, step, SUM(weight)::BIGINT AS n
FROM (SELECT @slot(moment, $bucket_us::BIGINT) AS slot, step, weight
      FROM (SELECT "end" AS moment, step, weight
            FROM (
                -- include page_raw_calls
            ) AS raw_calls
            UNION ALL
            SELECT span + INTERVAL 1 MICROSECOND AS moment, step, weight
            FROM steps_15m
            -- include page_of_quarters
           ) AS moments) AS slotted
GROUP BY @keys, step
