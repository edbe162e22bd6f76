COALESCE(SUM(n), 0) AS calls,
COALESCE(SUM(n) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')), 0)
    AS judged,
COALESCE(SUM(n) FILTER (WHERE is_error), 0) AS errors,
COALESCE(SUM(n) FILTER (WHERE is_fault AND outcome IN ('error', 'rejected')
                             AND error_class = 'L1_input'), 0) AS input_faults,
COALESCE(SUM(n) FILTER (WHERE outcome = 'degraded'), 0) AS degraded,
COALESCE(SUM(n) FILTER (WHERE is_fault), 0) AS faults,
COALESCE(SUM(n_attempted), 0) AS attempted,
COALESCE(SUM(n_retried), 0) AS retried,
MAX(longest) AS slowest
