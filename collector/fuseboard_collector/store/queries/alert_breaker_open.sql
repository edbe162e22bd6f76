-- Per job, tool and region: 1 if a live process holds a breaker open or half open now, or did
-- at any time in (since, until]; 0 if the job has a live process and none does. No row without
-- a live process: nobody knows.
--
-- What a process knows is its newest heartbeat (which lists every breaker that is not closed),
-- overridden by newer transitions. A process is live while its newest heartbeat is after
-- $live_since; one that never sent a heartbeat, while its newest transition is after
-- $unheard_since.
WITH moves AS (
    SELECT
        coalesce(service, $no_service::VARCHAR) AS job,
        coalesce(instance, '') AS instance,
        breaker, tool,
        coalesce(region, $no_region::VARCHAR) AS region,
        time, from_state, to_state
    FROM breaker_transitions
    WHERE time <= $until::TIMESTAMP
),
beats AS (
    SELECT
        coalesce(service, $no_service::VARCHAR) AS job,
        instance,
        max(time) AS time,
        @newest(breakers, time) AS breakers
    FROM heartbeats
    WHERE time <= $until::TIMESTAMP
    GROUP BY ALL
),
live AS (
    SELECT job, instance, time AS beat FROM beats
    WHERE time > $live_since::TIMESTAMP
    UNION ALL
    SELECT job, instance, NULL AS beat FROM moves
    ANTI JOIN beats USING (job, instance)
    GROUP BY job, instance
    HAVING max(time) > $unheard_since::TIMESTAMP
),
listed AS (
    SELECT
        beats.job,
        beats.instance,
        @field(item, breaker) AS breaker,
        @field(item, tool) AS tool,
        coalesce(@field(item, region), $no_region::VARCHAR) AS region,
        beats.time,
        @field(item, state) AS state
    FROM beats @each_item(beats.breakers, item)
),
-- A breaker that the newest heartbeat does not list was closed when it was sent, even if the
-- event that said so got lost; a heartbeat without a list says nothing.
known AS (
    SELECT job, instance, breaker, tool, region, time, to_state AS state FROM moves
    UNION ALL
    SELECT * FROM listed
    UNION ALL
    SELECT DISTINCT moves.job, moves.instance, moves.breaker, moves.tool, moves.region,
        beats.time, 'closed' AS state
    FROM moves JOIN beats USING (job, instance)
    WHERE beats.breakers IS NOT NULL
      AND NOT EXISTS (
        SELECT 1 FROM listed
        WHERE listed.job = moves.job
          AND listed.instance = moves.instance
          AND listed.breaker = moves.breaker
      )
),
present AS (
    SELECT job, instance, breaker, tool, region, max_by(state, time) AS state
    FROM known
    GROUP BY ALL
),
was_open AS (
    SELECT job, tool, region FROM present JOIN live USING (job, instance)
    WHERE state IN ('open', 'half_open')
    UNION
    SELECT job, tool, region FROM moves JOIN live USING (job, instance)
    WHERE time > $since::TIMESTAMP
      AND (from_state IN ('open', 'half_open') OR to_state IN ('open', 'half_open'))
)
SELECT DISTINCT
    present.job,
    present.tool,
    present.region,
    CASE WHEN was_open.tool IS NULL THEN 0 ELSE 1 END::DOUBLE AS value,
    $until::TIMESTAMP AS newest
FROM present
LEFT JOIN was_open USING (job, tool, region)
WHERE present.job IN (SELECT job FROM live)
ORDER BY ALL
