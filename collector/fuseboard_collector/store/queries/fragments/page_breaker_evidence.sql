-- Transitions as they were reported.
moves AS MATERIALIZED (
    SELECT breaker, tool, COALESCE(region, 'unknown') AS region, upstream,
           COALESCE(instance, '') AS instance, time, received_at, from_state, to_state, reason,
           failure_ratio, error_class
    FROM breaker_transitions
    WHERE time <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
),
beats AS MATERIALIZED (
    -- include page_beats
),
-- The breakers that a process's newest heartbeat calls not closed.
listed AS MATERIALIZED (
    SELECT @field(item, breaker) AS breaker, @field(item, tool) AS tool,
           COALESCE(@field(item, region), 'unknown') AS region, @field(item, upstream) AS upstream,
           beats.instance,
           least(COALESCE(@time_of(@field(item, since)), beats.last_beat),
                 beats.last_beat) AS time,
           @field(item, state) AS state
    FROM beats @each_item(beats.breakers, item)
    WHERE @field(item, breaker) IS NOT NULL AND @field(item, tool) IS NOT NULL
      AND @field(item, state) IN ('open', 'half_open', 'isolated')
),
-- With what heartbeats say of changes whose own report got lost: an opening that was never heard
-- of, and a closing (the newest heartbeat lists breakers, and no longer this one).
changes AS MATERIALIZED (
    SELECT * FROM moves
    UNION ALL
    SELECT breaker, tool, region, upstream, instance, time, time AS received_at,
           'closed' AS from_state, state AS to_state, NULL AS reason, NULL AS failure_ratio,
           NULL AS error_class
    FROM listed
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND NOT EXISTS (
          SELECT 1 FROM moves
          WHERE moves.breaker = listed.breaker AND moves.instance = listed.instance
            AND moves.time > listed.time - INTERVAL 1 SECOND
      )
    UNION ALL
    SELECT last_moves.breaker, last_moves.tool, last_moves.region, last_moves.upstream,
           last_moves.instance, beats.last_beat AS time, beats.last_beat AS received_at,
           last_moves.to_state AS from_state, 'closed' AS to_state, NULL AS reason,
           NULL AS failure_ratio, NULL AS error_class
    FROM (SELECT *, row_number() OVER (PARTITION BY breaker, instance
                                       ORDER BY time DESC, received_at DESC) AS place
          FROM moves) AS last_moves
    JOIN beats ON beats.instance = last_moves.instance
    WHERE last_moves.place = 1 AND last_moves.to_state <> 'closed'
      AND last_moves.time < beats.last_beat AND beats.breakers IS NOT NULL
      AND NOT EXISTS (
          SELECT 1 FROM listed
          WHERE listed.breaker = last_moves.breaker AND listed.instance = last_moves.instance
      )
),
-- Breakers that calls of the window passed; one that never changed is known from nothing else.
-- The name is the one that the shim gives: tool/region/upstream without the absent parts.
guarded AS (
    SELECT tool || COALESCE('/' || region, '') || COALESCE('/' || upstream, '') AS breaker, tool,
           COALESCE(region, 'unknown') AS region, upstream, COALESCE(instance, '') AS instance
    FROM (
        -- include page_guards
    ) AS guards
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
    GROUP BY ALL
),
-- From the first sign of each process to 45 s (three heartbeats) after its last; one that never
-- sent a heartbeat can't be missed and lives on. Filters must not shorten a life.
lives AS MATERIALIZED (
    SELECT signs.instance, MIN(first_sign) AS began,
           CASE WHEN MAX(beats.last_beat) IS NULL THEN $until::TIMESTAMP
                ELSE least($until::TIMESTAMP, MAX(last_sign) + INTERVAL 45 SECOND) END AS ended
    FROM (SELECT instance, time AS first_sign, time AS last_sign FROM changes
          UNION ALL
          SELECT COALESCE(instance, '') AS instance, MIN(time), MAX(time)
          FROM breaker_transitions
          WHERE time <= $until::TIMESTAMP
          GROUP BY 1
          UNION ALL
          -- include page_callers
          UNION ALL
          SELECT instance, first_beat, last_beat FROM beats) AS signs
    LEFT JOIN beats ON beats.instance = signs.instance
    GROUP BY signs.instance
),
-- Each process's own breaker. What fell silent before the window is history.
members AS MATERIALIZED (
    SELECT breaker, known.instance, MIN(tool) AS tool, MIN(region) AS region,
           MIN(upstream) AS upstream, MIN(lives.began) AS began, MIN(lives.ended) AS ended
    FROM (SELECT breaker, tool, region, upstream, instance FROM changes
          UNION ALL
          SELECT breaker, tool, region, upstream, instance FROM guarded) AS known
    JOIN lives ON lives.instance = known.instance
    WHERE lives.ended > $since::TIMESTAMP
    GROUP BY breaker, known.instance
)
