-- The argument hashes with the most faults, each with all its calls in the window.
-- Parameters: since, until, tools, classes, regions.
WITH by_class AS (
    SELECT tool, args_hash, class_of_fault, SUM(weight) AS faults, MAX(last_end) AS last_end,
           row_number() OVER (PARTITION BY tool, args_hash
                              ORDER BY SUM(weight) DESC, class_of_fault) AS place
    FROM (
        -- include page_argued
    ) AS argued
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND class_of_fault IS NOT NULL
      AND @among($classes::VARCHAR[], class_of_fault)
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
    FROM (
        -- include page_argued
    ) AS argued
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND args_hash IN (SELECT args_hash FROM worst)
    GROUP BY 1, 2
)
SELECT worst.tool, worst.args_hash, worst.error_class, worst.faults, totals.calls,
       worst.faults / NULLIF(totals.calls, 0) AS fault_ratio, worst.last_end
FROM worst
JOIN totals ON totals.tool = worst.tool AND totals.args_hash = worst.args_hash
ORDER BY worst.faults DESC, worst.tool, worst.args_hash;
