-- Of each tool the hundred that failed most often; where fewer failed, those that were used most.
WITH argued AS (
    SELECT time_bucket(INTERVAL 6 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span,
       environment,
           agent, tool, region, args_hash,
           CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
                ELSE error_class END AS error_class,
           SUM(weight) AS weight, MAX("end") AS last_end
    FROM tool_calls
    -- include of_the_span
      AND args_hash IS NOT NULL
    GROUP BY ALL
),
ranked AS (
    SELECT span, tool, args_hash
    FROM argued
    GROUP BY span, tool, args_hash
    QUALIFY row_number() OVER (
        PARTITION BY span, tool
        ORDER BY COALESCE(SUM(weight) FILTER (WHERE error_class IS NOT NULL), 0) DESC,
                 SUM(weight) DESC, args_hash) <= 100
)
SELECT argued.*
FROM argued
SEMI JOIN ranked ON ranked.span = argued.span AND ranked.tool = argued.tool
    AND ranked.args_hash = argued.args_hash;
