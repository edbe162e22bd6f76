SELECT
    job,
    tool,
    region,
    sum(weight)                                      AS calls,
    coalesce(sum(weight) FILTER (WHERE is_event), 0) AS events,
    coalesce(sum(weight) FILTER (WHERE is_event), 0) / nullif(sum(weight), 0) AS value,
    max("end")                                       AS newest
FROM counted
GROUP BY ALL
ORDER BY ALL
