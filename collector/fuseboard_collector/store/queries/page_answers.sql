-- Answers of each tool and region by where they came from, with their ages in seconds (of those that
-- tell one), beside all calls that were to be answered there; most degraded first. An answer with
-- outcome ok and source live is listed where it tells its age, or its confidence as those of a tool
-- with a cache do. classes keeps only answers that stand in for faults of these classes.
-- Parameters: since, until, tools, classes, regions.
WITH cells AS (
    SELECT tool, region,
           SUM(CASE WHEN outcome NOT IN ('cancelled', 'abandoned', 'interrupted')
                    THEN weight ELSE 0 END) AS n_judged
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2
),
answers AS (
    SELECT tool AS called, place, outcome, result_source, SUM(weight) AS calls,
           SUM(weight * COALESCE(partial_failures, 0)) AS failed_parts,
           SUM(CASE WHEN confidence IS NOT NULL THEN weight ELSE 0 END) AS confident,
           COUNT(result_age_seconds) AS aged, @quantiles(result_age_seconds) AS ages,
           MAX(result_age_seconds) AS oldest, MAX("end") AS last_end
    FROM (
        -- include page_stand_ins
    ) AS stand_ins
    GROUP BY 1, 2, 3, 4
)
SELECT called AS tool, place AS region, answers.outcome AS outcome,
       answers.result_source AS result_source, calls, cells.n_judged AS judged, failed_parts, confident,
       aged, ages[1] AS age_p50, ages[2] AS age_p95, oldest, last_end
FROM answers
JOIN cells ON cells.tool = called AND cells.region = place
ORDER BY CASE answers.outcome WHEN 'degraded' THEN 0 WHEN 'partial' THEN 1 ELSE 2 END,
         calls DESC, 1, 2, 3, 4
LIMIT 3000;
