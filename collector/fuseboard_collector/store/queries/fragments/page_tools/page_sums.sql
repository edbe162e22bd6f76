outcome, error_class, SUM(weight) AS n, SUM(weight_attempted) AS n_attempted,
SUM(weight_retried) AS n_retried, MAX(duration_max) AS longest
