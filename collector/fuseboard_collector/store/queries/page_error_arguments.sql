-- The argument hashes with the most faults, each with all its calls in the window.
-- Parameters: since, until, tools, classes, regions.
WITH faults AS (
    SELECT *, COALESCE(error_class, 'unclassified') AS class_of_fault
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
      AND ($regions::VARCHAR[] IS NULL
           OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
      AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
      AND ($classes::VARCHAR[] IS NULL
           OR list_contains($classes::VARCHAR[], COALESCE(error_class, 'unclassified')))
),
worst AS (
    SELECT tool, args_hash, SUM(weight) AS faults, mode(class_of_fault) AS error_class,
           MAX("end") AS last_end
    FROM faults
    WHERE args_hash IS NOT NULL
    GROUP BY 1, 2
    ORDER BY 3 DESC, 1, 2
    LIMIT 50
),
totals AS (
    SELECT tool, args_hash, SUM(weight) AS calls
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
      AND ($regions::VARCHAR[] IS NULL
           OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
      AND args_hash IS NOT NULL
    GROUP BY 1, 2
)
SELECT worst.tool, worst.args_hash, worst.error_class, worst.faults, totals.calls,
       worst.faults / NULLIF(totals.calls, 0) AS fault_ratio, worst.last_end
FROM worst
JOIN totals ON totals.tool = worst.tool AND totals.args_hash = worst.args_hash
ORDER BY worst.faults DESC, worst.tool, worst.args_hash;
