-- include page_fault_counts
,
COALESCE(SUM(n) FILTER (WHERE is_error AND outcome = 'rejected'), 0) AS rejected,
COALESCE(SUM(n) FILTER (WHERE outcome = 'partial'), 0) AS partials,
COALESCE(SUM(n_attempts), 0) AS attempts_made,
COALESCE(SUM(in_backoff), 0) AS backoff_total,
COALESCE(SUM(in_attempts), 0) AS attempt_total,
COALESCE(SUM(in_all), 0) AS duration_total
