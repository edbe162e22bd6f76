-- Failed calls (L1 apart) over all calls that the caller let finish, ended in (since, until].
WITH judged AS (
    SELECT
        coalesce(service, $no_service::VARCHAR) AS job,
        tool,
        coalesce(region, $no_region::VARCHAR)   AS region,
        weight,
        outcome IN ('error', 'rejected')
            AND error_class IS DISTINCT FROM 'L1_input' AS is_event,
        "end"
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP
      AND "end" <= $until::TIMESTAMP
      AND outcome NOT IN ('cancelled', 'abandoned', 'interrupted')
      AND isfinite(weight)
)
SELECT
    job,
    tool,
    region,
    sum(weight)                                     AS calls,
    coalesce(sum(weight) FILTER (WHERE is_event), 0) AS events,
    coalesce(sum(weight) FILTER (WHERE is_event), 0) / nullif(sum(weight), 0) AS value,
    max("end")                                      AS newest
FROM judged
GROUP BY ALL
ORDER BY ALL
