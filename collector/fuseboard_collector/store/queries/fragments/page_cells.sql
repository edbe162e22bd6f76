SELECT "end" AS moment, "end" AS last_end, framework, instrumentation, tool,
       COALESCE(region, 'unknown') AS region, outcome, error_class, weight,
       CASE WHEN attempts >= 1 THEN weight ELSE 0 END AS weight_attempted,
       CASE WHEN attempts >= 2 THEN weight ELSE 0 END AS weight_retried,
       -- A first attempt that failed shows in its call: by a second one, by what came of it, or
       -- by the layer that ended it.
       CASE WHEN attempts = 1 AND outcome IN ('ok', 'partial')
                 AND COALESCE(layer, 'tool') NOT IN ('retry', 'fallback')
            THEN weight ELSE 0 END AS weight_first,
       weight * attempts AS attempts_sum,
       weight * COALESCE(attempt_seconds, 0) AS attempt_sum,
       weight * COALESCE(backoff_seconds, 0) AS backoff_sum,
       weight * duration_seconds AS duration_sum,
       duration_seconds AS duration_max
FROM (
    -- include page_raw_calls
) AS raw_calls
-- include page_rolled_cells
