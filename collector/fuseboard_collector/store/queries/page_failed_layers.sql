-- Which layer failed: calls that spend a budget, by layer and outcome.
-- Parameters: since, until, tools, regions.
WITH kinds AS (
    -- Rules are for kinds of calls: to try them on each call takes thrice as long.
    SELECT outcome, error_class AS class_of_call, layer AS decided, classifier_id AS rule,
           error_type, cause_type, http_status AS status, least(attempts, 2) AS tries,
           breaker_state AS entered, SUM(weight) AS n, MAX("end") AS newest
    FROM tool_calls
    -- include page_spending_calls
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
)
SELECT
       -- include page_failed_layer
       AS failed_layer, outcome, SUM(n) AS calls, MAX(newest) AS last_end
FROM (SELECT *, COALESCE(error_type, '') || ' ' || COALESCE(cause_type, '') AS words
      FROM kinds) AS worded
-- include page_spends
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 1000;
