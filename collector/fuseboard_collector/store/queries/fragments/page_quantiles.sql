SELECT bucket, tool, region, three[1] AS p50, three[2] AS p95, three[3] AS p99
FROM (SELECT bucket, tool, region, @quantiles(length) AS three
      FROM @these
      GROUP BY 1, 2, 3) AS measured
