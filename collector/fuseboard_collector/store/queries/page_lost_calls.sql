-- Calls that were under way in a process that vanished, and of which no row ever came: listed in the
-- last heartbeat of a process from which nothing was heard for 45 s (three heartbeats). The longest
-- under way first; last_beat is when the process was heard last, in the window.
-- Parameters: since, until, tools, regions.
WITH
beats AS (
    -- include page_beats
),
silent AS (
    SELECT * FROM beats
    WHERE last_beat > $since::TIMESTAMP AND last_beat < $until::TIMESTAMP - INTERVAL 45 SECOND
),
listed AS (
    SELECT @field(item, tool) AS tool, COALESCE(@field(item, region), 'unknown') AS region,
           silent.last_service AS service, silent.instance AS instance,
           @time_of(@field(item, start)) AS since_time, @field(item, args_hash) AS args_hash,
           @field(item, span_id) AS span_id, silent.last_beat AS last_beat
    FROM silent @each_item(silent.running, item)
    WHERE @field(item, tool) IS NOT NULL AND @field(item, span_id) IS NOT NULL
),
lost AS (
    SELECT * FROM listed
    WHERE @among($tools::VARCHAR[], tool) AND @among($regions::VARCHAR[], region)
)
SELECT tool, region, service, instance, since_time, args_hash, span_id, last_beat
FROM lost
WHERE span_id NOT IN (
    SELECT span_id FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND span_id IN (SELECT span_id FROM lost)
)
ORDER BY since_time NULLS LAST, tool, span_id
LIMIT 1000;
