-- Calls with at least one retry over calls that made an attempt, ended in (since, until].
-- A weight that is no finite number is a broken row, not a quantity: it counts for nothing.
SELECT
    coalesce(service, $no_service::VARCHAR) AS job,
    tool,
    coalesce(region, $no_region::VARCHAR)   AS region,
    sum(weight)                             AS calls,
    coalesce(sum(weight) FILTER (WHERE attempts >= 2), 0)                    AS events,
    coalesce(sum(weight) FILTER (WHERE attempts >= 2), 0) / nullif(sum(weight), 0) AS value,
    max("end")                              AS newest
FROM tool_calls
WHERE "end" > $since::TIMESTAMP
  AND "end" <= $until::TIMESTAMP
  AND attempts >= 1
  AND @finite(weight)
GROUP BY ALL
ORDER BY ALL
