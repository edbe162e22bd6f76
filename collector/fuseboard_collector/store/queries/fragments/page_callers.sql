SELECT COALESCE(instance, '') AS instance, MIN("start"), MAX("end"), NULL
FROM (
    -- include page_named_rows of tool_calls by instance, "start", "end"
) AS raw_calls
GROUP BY 1
-- include page_rolled_callers
