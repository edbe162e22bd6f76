-- Faulty calls per class, tool and region (any outcome that carries a class), and their share of
-- all calls of that tool and region. Parameters: since, until, tools, classes, regions.
WITH faults AS (
    SELECT *, COALESCE(error_class, 'unclassified') AS class_of_fault
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
      AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
),
totals AS (
    SELECT tool, COALESCE(region, 'unknown') AS region, SUM(weight) AS calls
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
    GROUP BY 1, 2
),
counts AS (
    SELECT class_of_fault AS error_class, tool, COALESCE(region, 'unknown') AS region,
           SUM(weight) AS faults
    FROM faults
    GROUP BY 1, 2, 3
)
SELECT counts.error_class, counts.tool, counts.region, counts.faults, totals.calls,
       counts.faults / NULLIF(totals.calls, 0) AS fault_ratio
FROM counts
JOIN totals ON totals.tool = counts.tool AND totals.region = counts.region
ORDER BY counts.faults DESC, counts.tool, counts.region, counts.error_class
LIMIT 5000;
