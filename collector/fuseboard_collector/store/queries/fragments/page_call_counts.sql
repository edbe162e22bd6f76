COALESCE(SUM(weight), 0) AS calls,
COALESCE(SUM(weight) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')), 0)
    AS judged,
COALESCE(SUM(weight) FILTER (WHERE is_error), 0) AS errors,
COALESCE(SUM(weight) FILTER (WHERE is_fault AND outcome IN ('error', 'rejected')
                             AND error_class = 'L1_input'), 0) AS input_faults,
COALESCE(SUM(weight) FILTER (WHERE is_error AND outcome = 'rejected'), 0) AS rejected,
COALESCE(SUM(weight) FILTER (WHERE outcome = 'degraded'), 0) AS degraded,
COALESCE(SUM(weight) FILTER (WHERE outcome = 'partial'), 0) AS partials,
COALESCE(SUM(weight) FILTER (WHERE is_fault), 0) AS faults,
COALESCE(SUM(weight_attempted), 0) AS attempted,
COALESCE(SUM(weight_retried), 0) AS retried,
COALESCE(SUM(attempts_sum), 0) AS attempts_made,
COALESCE(SUM(backoff_sum), 0) AS backoff_total,
COALESCE(SUM(attempt_sum), 0) AS attempt_total,
COALESCE(SUM(duration_sum), 0) AS duration_total,
MAX(duration_max) AS slowest
