-- Within a step of the histogram durations are taken to be spread evenly on the scale of octaves.
SELECT @keys,
       arg_min(pow(2, (length + (0.5 * total - (below - weight)) / weight) / 8), length)
           FILTER (WHERE below >= 0.5 * total) / 1000 AS p50,
       arg_min(pow(2, (length + (0.95 * total - (below - weight)) / weight) / 8), length)
           FILTER (WHERE below >= 0.95 * total) / 1000 AS p95,
       arg_min(pow(2, (length + (0.99 * total - (below - weight)) / weight) / 8), length)
           FILTER (WHERE below >= 0.99 * total) / 1000 AS p99,
       MAX(total) AS total
FROM (SELECT *,
             SUM(weight) OVER (PARTITION BY @keys ORDER BY length) AS below,
             SUM(weight) OVER (PARTITION BY @keys) AS total
      FROM (SELECT @keys, length, SUM(weight) AS weight
            FROM @these
            GROUP BY @keys, length) AS steps) AS ranked
GROUP BY @keys
