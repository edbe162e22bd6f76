SELECT tool, region, upstream, instance
FROM (
    -- include page_raw_calls
) AS raw_calls
WHERE breaker_state IS NOT NULL
-- include page_rolled_guards
