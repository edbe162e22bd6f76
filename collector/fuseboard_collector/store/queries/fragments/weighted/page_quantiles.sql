SELECT bucket, tool, region,
       MIN(length) FILTER (WHERE below >= 0.5 * total) AS p50,
       MIN(length) FILTER (WHERE below >= 0.95 * total) AS p95,
       MIN(length) FILTER (WHERE below >= 0.99 * total) AS p99,
       MAX(total) AS total
FROM (SELECT bucket, tool, region, length,
             SUM(weight) OVER (PARTITION BY bucket, tool, region ORDER BY length) AS below,
             SUM(weight) OVER (PARTITION BY bucket, tool, region) AS total
      FROM @these) AS ranked
GROUP BY 1, 2, 3
