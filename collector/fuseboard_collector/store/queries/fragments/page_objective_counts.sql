SUM(n) AS calls,
COALESCE(SUM(n) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')), 0)
    AS judged,
COALESCE(SUM(n) FILTER (WHERE outcome IN ('error', 'rejected')
                             AND COALESCE(error_class, 'unclassified') <> 'L1_input'), 0) AS errors,
COALESCE(SUM(n) FILTER (WHERE outcome IN ('ok', 'partial', 'degraded')
                              OR outcome = 'error' AND error_class = 'L5_semantic'), 0) AS answered,
COALESCE(SUM(n) FILTER (WHERE outcome IN ('partial', 'degraded')
                              OR outcome IN ('ok', 'error') AND error_class = 'L5_semantic'), 0)
    AS unsound
