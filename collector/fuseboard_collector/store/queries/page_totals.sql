-- The window in one row: counts (weighted) and exact latency quantiles in seconds.
-- judged = all calls without cancelled, abandoned and interrupted; errors = error and rejected
-- without L1_input; error rate = errors / judged; retry rate = retried / attempted;
-- amplification = attempts_made / attempted. classes narrows errors and faults, nothing else.
-- Parameters: since, until, tools, classes, regions.
WITH calls AS (
    -- include page_calls_in_window
)
SELECT
       -- include page_call_counts
FROM calls;
