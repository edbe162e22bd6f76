-- include page_slow_rows of page_raw_calls by @keys
UNION ALL
-- Within the step that the bound is in, durations are taken to be spread evenly on the scale of
-- octaves, as those of quantiles are.
SELECT @keys, SUM(weight * least(1, greatest(0, length + 1 - 8 * log2(1000 * bound)))) AS slow
FROM (SELECT moment, tool, length, weight,
             @mapped(tool, $bound_tools::VARCHAR[], $bound_seconds::DOUBLE[], $slow_seconds::DOUBLE)
                 AS bound
      FROM (
          -- include page_stepped_rows of durations
      ) AS stepped
      WHERE @among($tools::VARCHAR[], tool)
        AND @among($regions::VARCHAR[], region)) AS bounded
GROUP BY @keys
