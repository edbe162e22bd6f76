SELECT
    coalesce(service, $no_service::VARCHAR) AS job,
    tool,
    coalesce(region, $no_region::VARCHAR)   AS region,
    outcome,
    error_class,
    weight,
    "end"
FROM tool_calls
WHERE "end" > $since::TIMESTAMP
  AND "end" <= $until::TIMESTAMP
  AND outcome NOT IN ('cancelled', 'abandoned', 'interrupted')
  AND @finite(weight)
