SELECT bucket, tool, region, three[1] AS p50, three[2] AS p95, three[3] AS p99, total
FROM (SELECT bucket, tool, region, @quantiles(length) AS three,
             SUM(weight) AS total
      FROM @these
      GROUP BY 1, 2, 3) AS measured
