-- Of each tool the hundred that failed most often, of those that failed once fifty at most; where
-- fewer failed, those that were used most. Else arguments that never come again were most of it.
-- The last part of the score only makes the choice among equals the same each time.
WITH used AS (
    SELECT time_bucket(INTERVAL 6 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span, tool, args_hash,
           SUM(CASE WHEN error_class IS NOT NULL OR outcome IN ('error', 'rejected')
                    THEN weight * 1000000 ELSE weight END)
               + hash(args_hash) / 36893488147419103232 AS score
    FROM tool_calls
    -- include of_the_span
      AND args_hash IS NOT NULL
    GROUP BY 1, 2, 3
),
listed AS (
    SELECT span, tool,
           -- include most_failing
           AS args_hash
    FROM used
    GROUP BY span, tool
)
SELECT listed.span, calls.tool, COALESCE(calls.region, 'unknown') AS region, calls.args_hash, calls.args_key,
       CASE WHEN calls.outcome IN ('error', 'rejected')
            THEN COALESCE(calls.error_class, 'unclassified') ELSE calls.error_class END
           AS error_class,
       SUM(calls.weight) AS weight, MAX(calls."end") AS last_end
FROM (SELECT * FROM tool_calls
      -- include of_the_span
     ) AS calls
JOIN listed ON listed.tool = calls.tool AND listed.args_hash = calls.args_hash
    AND listed.span = time_bucket(INTERVAL 6 HOUR, calls."end" - INTERVAL 1 MICROSECOND)
GROUP BY ALL
ORDER BY listed.span, calls.tool, calls.args_hash;
