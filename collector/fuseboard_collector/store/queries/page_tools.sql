-- One row per tool and region, with the columns of page_totals; most errors first.
-- Parameters: since, until, tools, classes, regions.
WITH calls AS (
    -- include page_calls_in_window
)
SELECT tool, COALESCE(region, 'unknown') AS region,
       MAX("end") AS last_end,
       -- include page_call_counts
FROM calls
GROUP BY 1, 2
ORDER BY errors DESC, retried DESC, calls DESC, 1, 2
LIMIT 2000;
