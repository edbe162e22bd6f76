-- What the faults are: class, classifier, error type, HTTP status; most frequent first.
-- Parameters: since, until, tools, classes, regions.
WITH placed AS (
    SELECT class_of_fault, classifier_id, error_type, http_status, tool, region,
           SUM(weight) AS n, MAX(last_end) AS newest
    FROM (
        -- include page_faults
    ) AS all_faults
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], class_of_fault)
    GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT class_of_fault AS error_class, classifier_id, error_type, http_status,
       SUM(n) AS faults, COUNT(DISTINCT tool) AS tools,
       COUNT(DISTINCT region) AS regions, MAX(newest) AS last_end
FROM placed
GROUP BY 1, 2, 3, 4
ORDER BY faults DESC, 1, classifier_id, error_type, http_status
LIMIT 100;
