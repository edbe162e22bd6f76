-- A quantile out of steps could lie above the slowest call.
least(quantiles.p50, slowest) AS p50,
least(quantiles.p95, slowest) AS p95,
least(quantiles.p99, slowest) AS p99
