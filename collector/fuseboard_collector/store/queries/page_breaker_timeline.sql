-- Stretches of one state per breaker within the window, worst state over processes. A stretch that
-- began before the window is cut at its start, the present one ends at its end.
-- Parameters: since, until, tools, regions.
WITH changes AS (
    SELECT breaker, tool, COALESCE(region, 'unknown') AS region,
           COALESCE(instance, '') AS instance, time, received_at, to_state, from_state
    FROM breaker_transitions
    WHERE time <= $until::TIMESTAMP
      AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
      AND ($regions::VARCHAR[] IS NULL
           OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
),
stretches AS (
    SELECT breaker, instance, time AS began,
           COALESCE(lead(time) OVER (PARTITION BY breaker, instance ORDER BY time, received_at),
                    $until::TIMESTAMP) AS ended,
           CASE to_state WHEN 'isolated' THEN 3 WHEN 'open' THEN 2 WHEN 'half_open' THEN 1
                         ELSE 0 END
               AS severity
    FROM changes
),
moments AS (
    SELECT breaker, MIN(tool) AS tool, MIN(region) AS region,
           greatest(time, $since::TIMESTAMP) AS moment
    FROM changes
    GROUP BY breaker, greatest(time, $since::TIMESTAMP)
    UNION
    SELECT breaker, MIN(tool) AS tool, MIN(region) AS region, $since::TIMESTAMP AS moment
    FROM changes
    GROUP BY breaker
),
states AS (
    SELECT moments.breaker, moments.tool, moments.region, moments.moment,
           COALESCE(MAX(stretches.severity), 0) AS severity
    FROM moments
    LEFT JOIN stretches
        ON stretches.breaker = moments.breaker
        AND stretches.began <= moments.moment AND moments.moment < stretches.ended
    GROUP BY 1, 2, 3, 4
)
SELECT breaker, tool, region,
       CASE severity WHEN 3 THEN 'isolated' WHEN 2 THEN 'open' WHEN 1 THEN 'half_open'
                     ELSE 'closed' END AS state,
       moment AS began,
       COALESCE(lead(moment) OVER (PARTITION BY breaker ORDER BY moment), $until::TIMESTAMP)
           AS ended
FROM states
ORDER BY breaker, began
LIMIT 5000;
