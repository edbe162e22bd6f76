-- What the faults are: class, classifier, error type, HTTP status; most frequent first.
-- Parameters: since, until, tools, classes, regions.
WITH faults AS (
    SELECT *, COALESCE(error_class, 'unclassified') AS class_of_fault
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
      AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
)
SELECT class_of_fault AS error_class, classifier_id, error_type, http_status,
       SUM(weight) AS faults, COUNT(DISTINCT tool) AS tools,
       COUNT(DISTINCT COALESCE(region, 'unknown')) AS regions, MAX("end") AS last_end
FROM faults
GROUP BY 1, 2, 3, 4
ORDER BY faults DESC, 1, classifier_id, error_type, http_status
LIMIT 100;
