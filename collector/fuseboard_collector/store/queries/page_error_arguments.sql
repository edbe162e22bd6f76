-- The argument hashes with the most faults, each with all its calls in the window.
-- Parameters: since, until, tools, classes, regions.
WITH faults AS (
    SELECT *, COALESCE(error_class, 'unclassified') AS class_of_fault
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
      AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
),
by_class AS (
    SELECT tool, args_hash, class_of_fault, SUM(weight) AS faults, MAX("end") AS last_end,
           row_number() OVER (PARTITION BY tool, args_hash
                              ORDER BY SUM(weight) DESC, class_of_fault) AS place
    FROM faults
    WHERE args_hash IS NOT NULL
    GROUP BY 1, 2, 3
),
worst AS (
    SELECT tool, args_hash, SUM(faults) AS faults,
           MAX(CASE WHEN place = 1 THEN class_of_fault END) AS error_class,
           MAX(last_end) AS last_end
    FROM by_class
    GROUP BY 1, 2
    ORDER BY 3 DESC, 1, 2
    LIMIT 50
),
totals AS (
    SELECT tool, args_hash, SUM(weight) AS calls
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND args_hash IS NOT NULL
    GROUP BY 1, 2
)
SELECT worst.tool, worst.args_hash, worst.error_class, worst.faults, totals.calls,
       worst.faults / NULLIF(totals.calls, 0) AS fault_ratio, worst.last_end
FROM worst
JOIN totals ON totals.tool = worst.tool AND totals.args_hash = worst.args_hash
ORDER BY worst.faults DESC, worst.tool, worst.args_hash;
