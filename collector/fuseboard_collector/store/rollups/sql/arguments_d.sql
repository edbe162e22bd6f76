-- Out of what its six hours kept, as much as they.
WITH kept AS (
    SELECT time_bucket(INTERVAL 1 DAY, span) AS day, *
    FROM arguments_6h
    WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
),
used AS (
    SELECT day, tool, args_hash,
           SUM(CASE WHEN error_class IS NOT NULL THEN weight * 1000000 ELSE weight END)
               + hash(args_hash) / 36893488147419103232 AS score
    FROM kept
    GROUP BY 1, 2, 3
),
listed AS (
    SELECT day, tool,
           -- include most_failing
           AS args_hash
    FROM used
    GROUP BY day, tool
)
SELECT kept.day AS span, kept.tool, kept.region, kept.args_hash, kept.args_key, kept.error_class,
       SUM(kept.weight) AS weight, MAX(kept.last_end) AS last_end
FROM kept
JOIN listed ON listed.day = kept.day AND listed.tool = kept.tool
    AND listed.args_hash = kept.args_hash
GROUP BY ALL
ORDER BY span, kept.tool, kept.args_hash;
