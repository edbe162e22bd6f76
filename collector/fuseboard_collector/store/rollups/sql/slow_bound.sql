-- A duration that as many calls as are asked for reach: the longest of every rollup is one. Null
-- where there are fewer rollups.
SELECT CASE WHEN COUNT(*) >= $row_limit::BIGINT THEN MIN(duration_max) END
FROM (SELECT duration_max
      FROM (SELECT tool, region, duration_max
            FROM calls_h
            -- include page_of_hours
            UNION ALL
            SELECT tool, region, duration_max
            FROM calls_6h
            -- include page_of_sixes
           ) AS rolled
      WHERE @among($tools::VARCHAR[], tool)
        AND @among($regions::VARCHAR[], region)
      ORDER BY duration_max DESC
      LIMIT $row_limit::BIGINT) AS longest;
