-- Faulty calls per class, tool and region (any outcome that carries a class), and their share of
-- all calls of that tool and region. Parameters: since, until, tools, classes, regions.
WITH summed AS (
    SELECT tool, region, outcome, error_class,
           SUM(weight) AS n
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2, 3, 4
),
calls AS (
    -- include page_judged of summed
),
counts AS (
    SELECT CASE WHEN is_fault THEN COALESCE(error_class, 'unclassified') END AS class_of_fault,
           tool, region, SUM(n) AS faults
    FROM calls
    GROUP BY 1, 2, 3
),
shares AS (
    SELECT *, SUM(faults) OVER (PARTITION BY tool, region) AS calls FROM counts
)
SELECT class_of_fault AS error_class, tool, region, faults, calls,
       faults / NULLIF(calls, 0) AS fault_ratio
FROM shares
WHERE class_of_fault IS NOT NULL
ORDER BY faults DESC, tool, region, 1
LIMIT 5000;
