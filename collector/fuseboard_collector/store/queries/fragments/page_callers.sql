SELECT COALESCE(instance, '') AS instance, MIN("start"), MAX("end")
FROM (
    -- include page_raw_calls
) AS raw_calls
GROUP BY 1
-- include page_rolled_callers
