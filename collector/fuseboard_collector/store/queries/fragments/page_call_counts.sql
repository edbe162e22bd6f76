COALESCE(SUM(n), 0) AS calls,
COALESCE(SUM(n) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')), 0)
    AS judged,
COALESCE(SUM(n) FILTER (WHERE is_error), 0) AS errors,
COALESCE(SUM(n) FILTER (WHERE is_fault AND outcome IN ('error', 'rejected')
                             AND error_class = 'L1_input'), 0) AS input_faults,
COALESCE(SUM(n) FILTER (WHERE is_error AND outcome = 'rejected'), 0) AS rejected,
COALESCE(SUM(n) FILTER (WHERE outcome = 'degraded'), 0) AS degraded,
COALESCE(SUM(n) FILTER (WHERE outcome = 'partial'), 0) AS partials,
COALESCE(SUM(n) FILTER (WHERE is_fault), 0) AS faults,
COALESCE(SUM(n_attempted), 0) AS attempted,
COALESCE(SUM(n_retried), 0) AS retried,
COALESCE(SUM(n_attempts), 0) AS attempts_made,
COALESCE(SUM(in_backoff), 0) AS backoff_total,
COALESCE(SUM(in_attempts), 0) AS attempt_total,
COALESCE(SUM(in_all), 0) AS duration_total,
MAX(longest) AS slowest
