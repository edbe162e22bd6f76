-- Calls that took longer than a bound over all calls, ended in (since, until]. NaN compares
-- greater than every number here, so a duration that is not finite would count as slow.
WITH counted AS (
    SELECT
        coalesce(service, $no_service::VARCHAR) AS job,
        tool,
        coalesce(region, $no_region::VARCHAR)   AS region,
        weight,
        duration_seconds > $slower_than::DOUBLE AS is_event,
        "end"
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP
      AND "end" <= $until::TIMESTAMP
      AND @finite(weight)
      AND @finite(duration_seconds)
)
-- include alert_share_of_events
