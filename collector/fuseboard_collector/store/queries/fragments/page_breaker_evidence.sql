-- Transitions as they were reported, by day; the window's start parts a day in two. What one query
-- knows of earlier days by rollups another reads here.
moves AS MATERIALIZED (
    SELECT CASE WHEN time <= $since::TIMESTAMP THEN $since::TIMESTAMP - INTERVAL 1 DAY
                ELSE greatest(@bucket(time, 86400000000), $since::TIMESTAMP) END AS span,
           breaker, tool, COALESCE(region, 'unknown') AS region, upstream,
           COALESCE(instance, '') AS instance, time, received_at, from_state, to_state, reason,
           failure_ratio, error_class
    FROM (
        -- include page_raw_moves
    ) AS raw_moves
),
chosen_moves AS (
    SELECT * FROM moves
    WHERE @among($tools::VARCHAR[], tool) AND @among($regions::VARCHAR[], region)
      -- include page_of_breakers of moves
),
-- The first and the last of them of each process's breaker, by day.
stints AS MATERIALIZED (
    -- include breaker_stints of chosen_moves
    -- include page_rolled_stints
),
last_moves AS MATERIALIZED (
    SELECT breaker, instance, MIN(tool) AS tool, MIN(region) AS region, MIN(upstream) AS upstream,
           MAX(last_time) AS time, @newest(last_to, last_time) AS to_state,
           @newest((reason, failure_ratio, error_class), last_time) AS why
    FROM stints
    GROUP BY breaker, instance
),
beats AS MATERIALIZED (
    -- include page_beats
),
-- The breakers that a process's newest heartbeat calls not closed.
listed AS MATERIALIZED (
    SELECT breaker, MIN(tool) AS tool, MIN(region) AS region, MIN(upstream) AS upstream, instance,
           time, MAX(state) AS state
    FROM (
        SELECT @field(item, breaker) AS breaker, @field(item, tool) AS tool,
               COALESCE(@field(item, region), 'unknown') AS region,
               @field(item, upstream) AS upstream, beats.instance,
               least(COALESCE(@time_of(@field(item, since)), beats.last_beat),
                     beats.last_beat) AS time,
               @field(item, state) AS state
        FROM beats @each_item(beats.breakers, item)
        WHERE @field(item, breaker) IS NOT NULL AND @field(item, tool) IS NOT NULL
          AND @field(item, state) IN ('open', 'half_open', 'isolated')
    ) AS items
    GROUP BY breaker, instance, time
),
-- What heartbeats say of changes whose own report got lost: an opening that was never heard of, and
-- a closing (the newest heartbeat lists breakers, and no longer this one). All come after the last
-- transition of the process's breaker.
hints AS MATERIALIZED (
    -- Joins, for a condition that looks into a table costs the engine more to plan than to answer.
    SELECT listed.breaker AS breaker, listed.tool AS tool, listed.region AS region,
           listed.upstream AS upstream, listed.instance AS instance, listed.time AS time,
           'closed' AS from_state, listed.state AS to_state
    FROM listed
    LEFT JOIN last_moves ON last_moves.breaker = listed.breaker
        AND last_moves.instance = listed.instance
    WHERE @among($tools::VARCHAR[], listed.tool)
      AND @among($regions::VARCHAR[], listed.region)
      -- include page_of_breakers of listed
      AND (last_moves.time IS NULL OR last_moves.time <= listed.time - INTERVAL 1 SECOND)
    UNION ALL
    SELECT last_moves.breaker, last_moves.tool, last_moves.region, last_moves.upstream,
           last_moves.instance, beats.last_beat AS time, last_moves.to_state AS from_state,
           'closed' AS to_state
    FROM last_moves
    JOIN beats ON beats.instance = last_moves.instance
    LEFT JOIN (SELECT DISTINCT breaker, instance, 1 AS is_named FROM listed) AS named
        ON named.breaker = last_moves.breaker AND named.instance = last_moves.instance
    WHERE last_moves.to_state <> 'closed' AND last_moves.time < beats.last_beat
      AND beats.breakers IS NOT NULL AND named.is_named IS NULL
),
-- Breakers that calls of the window passed; one that never changed is known from nothing else.
-- The name is the one that the shim gives: tool/region/upstream without the absent parts.
guarded AS (
    SELECT tool || COALESCE('/' || region, '') || COALESCE('/' || upstream, '') AS breaker, tool,
           COALESCE(region, 'unknown') AS region, upstream, COALESCE(instance, '') AS instance
    FROM (
        SELECT DISTINCT tool, region, upstream, instance
        FROM (
            -- include page_guards
        ) AS all_guards
        -- Never reached: it keeps the engine from making the name of each row to look for it.
        LIMIT 1000000000
    ) AS guards
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
),
-- From the first sign of each process to 45 s (three heartbeats) after its last; one that never
-- sent a heartbeat can't be missed and lives on. Filters must not shorten a life: of hints, which they
-- cut, what heartbeats list stands here.
lives AS MATERIALIZED (
    SELECT instance, MIN(first_sign) AS began,
           CASE WHEN MAX(last_beat) IS NULL THEN $until::TIMESTAMP
                ELSE least($until::TIMESTAMP, MAX(last_sign) + INTERVAL 45 SECOND) END AS ended
    FROM (SELECT instance, first_beat AS first_sign, last_beat AS last_sign, last_beat FROM beats
          UNION ALL
          SELECT instance, time, time, NULL FROM listed
          UNION ALL
          SELECT instance, MIN(time), MAX(time), NULL FROM moves GROUP BY 1
          -- include page_rolled_movers
          UNION ALL
          -- include page_callers
         ) AS signs
    GROUP BY instance
),
-- Each process's own breaker. What fell silent before the window is history.
members AS MATERIALIZED (
    SELECT breaker, known.instance AS instance, tool, region, upstream, began, ended
    FROM (SELECT breaker, instance, MIN(tool) AS tool, MIN(region) AS region,
                 MIN(upstream) AS upstream
          FROM (SELECT breaker, tool, region, upstream, instance FROM last_moves
                UNION ALL
                SELECT breaker, tool, region, upstream, instance FROM hints
                UNION ALL
                SELECT breaker, tool, region, upstream, instance FROM guarded) AS all_known
          GROUP BY breaker, instance) AS known
    JOIN lives ON lives.instance = known.instance
    WHERE ended > $since::TIMESTAMP
      -- include page_of_breakers of known
)
