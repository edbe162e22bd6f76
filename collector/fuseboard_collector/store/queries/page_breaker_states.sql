-- The state of each breaker at the end of the window: the newest state of every process that has
-- it, the worst over processes, and since when (NULL: never changed). A process that fell silent
-- may have died with its breaker open: that is unknown; one that was closed counts for nothing
-- while another lives. last_state is what was heard last. Parameters: since, until, tools, regions.
WITH
-- include page_breaker_evidence
,
-- The last change of each process's breaker.
latest AS MATERIALIZED (
    SELECT breaker, instance, MAX(time) AS last_time, @newest(to_state, time) AS last_state
    FROM (SELECT breaker, instance, time, to_state FROM last_moves
          UNION ALL
          SELECT breaker, instance, time, to_state FROM hints) AS changes
    GROUP BY breaker, instance
),
known AS (
    SELECT members.breaker AS breaker, members.tool AS tool, members.region AS region,
           members.upstream AS upstream,
           latest.last_time AS time, @item(last_moves.why, 1) AS reason,
           @item(last_moves.why, 2) AS failure_ratio, @item(last_moves.why, 3) AS error_class,
           COALESCE(latest.last_state, 'closed') AS last_state,
           members.ended < $until::TIMESTAMP AS is_silent
    FROM members
    LEFT JOIN latest ON latest.breaker = members.breaker AND latest.instance = members.instance
    LEFT JOIN last_moves ON last_moves.breaker = latest.breaker
        AND last_moves.instance = latest.instance AND last_moves.time = latest.last_time
),
ranked AS (
    SELECT *,
           CASE WHEN is_silent THEN CASE last_state WHEN 'closed' THEN -1 ELSE 1 END
                WHEN last_state = 'isolated' THEN 4 WHEN last_state = 'open' THEN 3
                WHEN last_state = 'half_open' THEN 2 ELSE 0 END AS severity
    FROM known
),
-- Grouped: what finds the first of a window of rows takes one engine long to set up.
worst AS (
    SELECT breaker,
           @newest((severity, tool, region, upstream, last_state, time, reason, failure_ratio,
                    error_class),
                   (severity, CASE WHEN time IS NULL THEN 0 ELSE 1 END,
                    COALESCE(time, $until::TIMESTAMP))) AS process,
           COUNT(*) AS processes,
           COUNT(CASE WHEN severity >= 2 THEN 1 END) AS processes_not_closed
    FROM ranked
    GROUP BY breaker
),
placed AS (
    SELECT breaker, @item(process, 1) AS severity, @item(process, 2) AS tool,
           @item(process, 3) AS region, @item(process, 4) AS upstream,
           @item(process, 5) AS last_state, @item(process, 6) AS since_time,
           @item(process, 7) AS reason, @item(process, 8) AS failure_ratio,
           @item(process, 9) AS error_class, processes, processes_not_closed
    FROM worst
)
SELECT breaker, tool, region, upstream,
       CASE severity WHEN 4 THEN 'isolated' WHEN 3 THEN 'open' WHEN 2 THEN 'half_open'
                     WHEN 0 THEN 'closed' ELSE 'unknown' END AS state,
       last_state, since_time, reason, failure_ratio, error_class, processes, processes_not_closed
FROM placed
ORDER BY abs(severity) DESC, since_time DESC NULLS LAST, breaker
LIMIT 1000;
