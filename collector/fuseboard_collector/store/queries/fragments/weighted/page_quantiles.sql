SELECT @keys,
       MIN(length) FILTER (WHERE below >= 0.5 * total) AS p50,
       MIN(length) FILTER (WHERE below >= 0.95 * total) AS p95,
       MIN(length) FILTER (WHERE below >= 0.99 * total) AS p99,
       MAX(total) AS total
FROM (SELECT @keys, length,
             SUM(weight) OVER (PARTITION BY @keys ORDER BY length) AS below,
             SUM(weight) OVER (PARTITION BY @keys) AS total
      FROM @these) AS ranked
GROUP BY @keys
