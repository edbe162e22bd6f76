outcome, error_class, SUM(weight) AS n, SUM(weight_attempted) AS n_attempted,
SUM(weight_retried) AS n_retried, SUM(attempts_sum) AS n_attempts,
SUM(attempt_sum) AS in_attempts, SUM(backoff_sum) AS in_backoff, SUM(duration_sum) AS in_all,
MAX(duration_max) AS longest
