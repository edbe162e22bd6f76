SUM(weight) AS weight,
SUM(CASE WHEN attempts >= 1 THEN weight ELSE 0 END) AS weight_attempted,
SUM(CASE WHEN attempts >= 2 THEN weight ELSE 0 END) AS weight_retried,
SUM(CASE WHEN attempts = 1 AND outcome IN ('ok', 'partial')
              AND COALESCE(layer, 'tool') NOT IN ('retry', 'fallback')
         THEN weight ELSE 0 END) AS weight_first,
SUM(weight * attempts) AS attempts_sum,
SUM(weight * COALESCE(attempt_seconds, 0)) AS attempt_sum,
SUM(weight * COALESCE(backoff_seconds, 0)) AS backoff_sum,
SUM(weight * duration_seconds) AS duration_sum,
MAX(duration_seconds) AS duration_max,
MAX("end") AS last_end
