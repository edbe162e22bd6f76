SELECT @keys, SUM(CASE WHEN seconds <= @mapped(tool, $bound_tools::VARCHAR[],
                                               $bound_seconds::DOUBLE[], $slow_seconds::DOUBLE)
                       THEN 0 ELSE weight END) AS slow
FROM (SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region,
             duration_seconds AS seconds, weight
      FROM (
          -- include @these
      ) AS every_call) AS timed
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
GROUP BY @keys
