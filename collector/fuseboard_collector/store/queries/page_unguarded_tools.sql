-- Tools whose calls came from other instrumentation alone, so that no policy of ours can act on
-- them; most errors first. Rows without an instrumentation are older than the column: nobody knows.
-- Parameters: since, until, tools, classes, regions.
WITH summed AS (
    SELECT tool, framework, instrumentation, MAX(last_end) AS newest,
           -- include page_sums
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY tool, framework, instrumentation, outcome, error_class
),
calls AS (
    -- include page_judged of summed
),
counted AS (
    SELECT tool,
           @joined(framework) AS frameworks,
           MAX(newest) AS last_end,
           COUNT(CASE WHEN COALESCE(instrumentation, 'fuseboard') = 'fuseboard' THEN 1 END)
               AS own_calls,
           -- include page_call_counts
    FROM calls
    GROUP BY 1
)
SELECT tool, frameworks, last_end, calls, judged, errors,
       CASE WHEN judged > 0 THEN errors / judged END AS error_ratio
FROM counted
WHERE own_calls = 0
ORDER BY errors DESC, calls DESC, tool
LIMIT 1000;
