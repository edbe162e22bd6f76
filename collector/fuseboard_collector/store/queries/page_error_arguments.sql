-- The argument hashes with the most faults, each with all its calls in the window.
-- Parameters: since, until, tools, classes, regions.
WITH argued AS
-- include page_argued_again
(
    SELECT tool, argument, argument_text, class_of_fault, weight, last_end
    FROM (
        -- include page_argued
    ) AS calls_with_arguments
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
),
worst AS (
    SELECT tool, argument, SUM(weight) AS faults
    FROM (
        -- include page_failing
    ) AS failing
    WHERE @among($classes::VARCHAR[], class_of_fault)
    GROUP BY 1, 2
    ORDER BY faults DESC, tool,
             -- include page_argument_order
    LIMIT 50
),
by_class AS (
    SELECT tool, argument, class_of_fault, MAX(argument_text) AS argument_text,
           MAX(last_end) AS last_end, SUM(weight) AS some_calls,
           SUM(CASE WHEN class_of_fault IS NOT NULL
                         AND @among($classes::VARCHAR[], class_of_fault)
                    THEN weight ELSE 0 END) AS some_faults
    FROM argued
    WHERE argument IN (SELECT argument FROM worst)
    GROUP BY 1, 2, 3
),
placed AS (
    SELECT *, row_number() OVER (PARTITION BY tool, argument
                                 ORDER BY some_faults DESC, class_of_fault) AS place
    FROM by_class
),
totals AS (
    SELECT tool, argument, MAX(argument_text) AS argument_text, SUM(some_calls) AS calls,
           MAX(CASE WHEN some_faults > 0 THEN last_end END) AS last_end,
           MAX(CASE WHEN place = 1 THEN class_of_fault END) AS error_class
    FROM placed
    GROUP BY 1, 2
)
SELECT worst.tool AS tool,
       -- include page_argument
       AS args_hash,
       totals.error_class AS error_class,
       worst.faults AS faults, totals.calls AS calls,
       worst.faults / NULLIF(totals.calls, 0) AS fault_ratio, totals.last_end AS last_end
FROM worst
JOIN totals ON totals.tool = worst.tool AND totals.argument = worst.argument
ORDER BY worst.faults DESC, worst.tool, args_hash;
