-- Sessions with calls in the window, those with most trouble first. Repeated: calls whose tool and
-- arguments come at least three times in the session, how often the most frequent of them does, and the
-- longest run of equal calls in a row (of sessions with repeated calls). Trouble: faulty calls, retries,
-- and repeats beyond the first of each. all_sessions, all_calls, all_troubled and all_repeating are of
-- all sessions, whatever the limit. classes narrows which faults count.
-- Parameters: since, until, tools, classes, regions, agents.
WITH chosen AS MATERIALIZED (
    SELECT session AS run, tool AS called, args_hash AS argued, agent AS caller, service AS process,
           "start" AS began, "end" AS ended, span_id AS span, attempts AS tries,
           backoff_seconds AS waited, cost AS paid, weight AS stands_for,
           CASE WHEN (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
                     AND @among($classes::VARCHAR[],
                                CASE WHEN outcome IN ('error', 'rejected')
                                     THEN COALESCE(error_class, 'unclassified')
                                     ELSE error_class END)
                THEN 1 ELSE 0 END AS is_faulty,
           CASE WHEN outcome IN ('error', 'rejected') THEN 1 ELSE 0 END AS is_lost
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND session IS NOT NULL
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND @among($agents::VARCHAR[], agent)
),
alike AS MATERIALIZED (
    SELECT run AS circling, called AS same_tool, argued AS same_arguments, COUNT(*) AS times
    FROM chosen
    WHERE argued IS NOT NULL
    GROUP BY 1, 2, 3
    HAVING COUNT(*) >= 3
),
circles AS (
    SELECT circling AS looped, SUM(times)::BIGINT AS repeated, MAX(times) AS most_alike,
           COUNT(*) AS different
    FROM alike
    GROUP BY 1
),
sums AS (
    SELECT run, SUM(stands_for) AS calls, COUNT(DISTINCT called) AS tools,
           SUM(stands_for * is_faulty) AS faults, SUM(stands_for * is_lost) AS lost,
           SUM(stands_for * tries) AS attempts,
           SUM(CASE WHEN tries > 1 THEN stands_for * (tries - 1) ELSE 0 END) AS retries,
           SUM(COALESCE(waited, 0) * stands_for) AS backoff, SUM(paid * stands_for) AS cost,
           MIN(began) AS first_start, MAX(ended) AS last_end
    FROM chosen
    GROUP BY 1
),
ranked AS MATERIALIZED (
    SELECT run AS session, calls, tools, faults, lost, attempts, retries, backoff, cost, first_start,
           last_end, COALESCE(repeated, 0) AS repeats, COALESCE(most_alike, 0) AS most_repeated,
           faults + retries + COALESCE(repeated - different, 0) AS trouble,
           COUNT(*) OVER () AS all_sessions, SUM(calls) OVER () AS all_calls,
           COUNT(CASE WHEN faults + retries > 0 OR repeated > 0 THEN 1 END) OVER ()
               AS all_troubled,
           COUNT(CASE WHEN repeated > 0 THEN 1 END) OVER () AS all_repeating
    FROM sums
    LEFT JOIN circles ON circles.looped = sums.run
    ORDER BY trouble DESC, last_end DESC, session
    LIMIT 500
),
names AS (
    SELECT run AS named, @joined(caller) AS agents, @joined(process) AS services
    FROM chosen
    WHERE run IN (SELECT session FROM ranked)
    GROUP BY 1
),
in_order AS (
    SELECT run AS walked,
           CASE WHEN lag(called) OVER ordered = called AND lag(argued) OVER ordered = argued
                THEN 0 ELSE 1 END AS is_other,
           began, ended, span
    FROM chosen
    WHERE run IN (SELECT session FROM ranked WHERE repeats > 0)
    WINDOW ordered AS (PARTITION BY run ORDER BY began, ended, span)
),
stretches AS (
    SELECT walked,
           SUM(is_other) OVER (PARTITION BY walked ORDER BY began, ended, span) AS stretch
    FROM in_order
),
runs AS (
    SELECT walked AS running, MAX(steps) AS longest
    FROM (SELECT walked, stretch, COUNT(*) AS steps FROM stretches GROUP BY 1, 2) AS counted
    GROUP BY 1
)
SELECT session, agents, services, calls, tools, faults, lost, attempts, retries, repeats,
       most_repeated, longest AS longest_run, trouble, backoff, cost, first_start, last_end,
       all_sessions, all_calls, all_troubled, all_repeating
FROM ranked
LEFT JOIN names ON names.named = ranked.session
LEFT JOIN runs ON runs.running = ranked.session
ORDER BY trouble DESC, last_end DESC, session;
