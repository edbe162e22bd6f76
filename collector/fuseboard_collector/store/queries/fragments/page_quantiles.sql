SELECT @keys, three[1] AS p50, three[2] AS p95, three[3] AS p99, total
FROM (SELECT @keys, @quantiles(length) AS three,
             SUM(weight) AS total
      FROM @these
      GROUP BY @keys) AS measured
