-- What the objectives of tools are judged by: one row per tool. calls = all; judged, errors as in
-- page_totals; answered = ok, partial, degraded, and errors of class L5_semantic; unsound = those of
-- the answered that were no valid live or fresh answer; slow = calls longer than the tool's bound:
-- slow_seconds, or that of bound_seconds at the tool's place in bound_tools.
-- Parameters: since, until, tools, regions, bound_tools, bound_seconds, slow_seconds.
WITH summed AS (
    SELECT tool, outcome, error_class, SUM(weight) AS n
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2, 3
),
counts AS (
    SELECT tool,
           -- include page_objective_counts
    FROM summed
    GROUP BY 1
),
slowness AS (
    SELECT tool AS slow_tool, SUM(slow) AS n_slow
    FROM (
        -- include page_slow_calls of tool_calls by tool
    ) AS measured
    GROUP BY 1
)
SELECT tool, calls, judged, errors, answered, unsound, COALESCE(n_slow, 0) AS slow
FROM counts
LEFT JOIN slowness ON slow_tool = tool
ORDER BY tool
LIMIT 50000;
