SELECT tool, region, upstream, instance
FROM (
    -- include page_named_rows of tool_calls by tool, region, upstream, instance, breaker_state
) AS raw_calls
WHERE breaker_state IS NOT NULL
-- include page_rolled_guards
