-- The state of each breaker at the end of the window: the newest state of every process that has
-- it, the worst over processes, and since when (NULL: never changed). A process that fell silent
-- may have died with its breaker open: that is unknown; one that was closed counts for nothing
-- while another lives. last_state is what was heard last. Parameters: since, until, tools, regions.
WITH
-- include page_breaker_evidence
,
latest AS (
    SELECT *, row_number() OVER (PARTITION BY breaker, instance
                                 ORDER BY time DESC, received_at DESC) AS place
    FROM changes
),
known AS (
    SELECT members.breaker, members.tool, members.region, members.upstream, latest.time,
           latest.reason, latest.failure_ratio, latest.error_class,
           COALESCE(latest.to_state, 'closed') AS last_state,
           members.ended < $until::TIMESTAMP AS is_silent
    FROM members
    LEFT JOIN latest ON latest.breaker = members.breaker AND latest.instance = members.instance
        AND latest.place = 1
),
ranked AS (
    SELECT *,
           CASE WHEN is_silent THEN CASE last_state WHEN 'closed' THEN -1 ELSE 1 END
                WHEN last_state = 'isolated' THEN 4 WHEN last_state = 'open' THEN 3
                WHEN last_state = 'half_open' THEN 2 ELSE 0 END AS severity
    FROM known
),
placed AS (
    SELECT *,
           row_number() OVER (PARTITION BY breaker ORDER BY severity DESC, time DESC NULLS LAST)
               AS worst_first,
           COUNT(*) OVER (PARTITION BY breaker) AS processes,
           COUNT(CASE WHEN severity >= 2 THEN 1 END) OVER (PARTITION BY breaker)
               AS processes_not_closed
    FROM ranked
)
SELECT breaker, tool, region, upstream,
       CASE severity WHEN 4 THEN 'isolated' WHEN 3 THEN 'open' WHEN 2 THEN 'half_open'
                     WHEN 0 THEN 'closed' ELSE 'unknown' END AS state,
       last_state, time AS since_time, reason, failure_ratio, error_class, processes, processes_not_closed
FROM placed
WHERE worst_first = 1
ORDER BY abs(severity) DESC, since_time DESC NULLS LAST, breaker
LIMIT 1000;
