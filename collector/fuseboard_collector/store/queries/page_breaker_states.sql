-- The state of each breaker at the end of the window: the last transition of every process that
-- has one (never changed = closed), the worst state over processes, and since when. A process that
-- has sent heartbeats and then none for 45 s (three beats) may have died with its breaker open:
-- its state is unknown. Parameters: until, tools, regions.
WITH latest AS (
    SELECT breaker, tool, COALESCE(region, 'unknown') AS region, upstream,
           COALESCE(instance, '') AS instance, time, to_state, reason, failure_ratio, error_class,
           row_number() OVER (PARTITION BY breaker, COALESCE(instance, '')
                              ORDER BY time DESC, received_at DESC) AS place
    FROM breaker_transitions
    WHERE time <= $until::TIMESTAMP
      AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
      AND ($regions::VARCHAR[] IS NULL
           OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
),
beats AS (
    SELECT instance, MAX(time) AS last_beat
    FROM heartbeats
    WHERE time <= $until::TIMESTAMP
    GROUP BY instance
),
known AS (
    SELECT latest.*,
           CASE WHEN to_state <> 'closed'
                     AND greatest(beats.last_beat, time) < $until::TIMESTAMP - INTERVAL 45 SECOND
                     AND beats.last_beat IS NOT NULL
                THEN 'unknown' ELSE to_state END AS state
    FROM latest
    LEFT JOIN beats ON beats.instance = latest.instance
    WHERE place = 1
),
ranked AS (
    SELECT *,
           CASE state WHEN 'isolated' THEN 4 WHEN 'open' THEN 3 WHEN 'half_open' THEN 2
                      WHEN 'unknown' THEN 1 ELSE 0 END AS severity
    FROM known
),
placed AS (
    SELECT *,
           row_number() OVER (PARTITION BY breaker ORDER BY severity DESC, time DESC)
               AS worst_first,
           COUNT(*) OVER (PARTITION BY breaker) AS processes,
           SUM(CASE WHEN severity >= 2 THEN 1 ELSE 0 END) OVER (PARTITION BY breaker)
               AS processes_not_closed
    FROM ranked
)
SELECT breaker, tool, region, upstream, state, time AS since_time, reason, failure_ratio,
       error_class, processes, processes_not_closed
FROM placed
WHERE worst_first = 1
ORDER BY severity DESC, since_time DESC, breaker
LIMIT 1000;
