-- What the faults are: class, classifier, error type, HTTP status; most frequent first.
-- Parameters: since, until, tools, classes, regions.
WITH faults AS (
    SELECT *
    FROM (
        -- include page_faults
    ) AS all_faults
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], class_of_fault)
)
SELECT class_of_fault AS error_class, classifier_id, error_type, http_status,
       SUM(weight) AS faults, COUNT(DISTINCT tool) AS tools,
       COUNT(DISTINCT region) AS regions, MAX(last_end) AS last_end
FROM faults
GROUP BY 1, 2, 3, 4
ORDER BY faults DESC, 1, classifier_id, error_type, http_status
LIMIT 100;
