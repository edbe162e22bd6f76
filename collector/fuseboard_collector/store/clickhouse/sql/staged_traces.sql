-- Traces with foreign spans of tools since a time, and whether they wait for assembly: something of
-- them arrived after what they were assembled to was made. Versions count half microseconds.
WITH seen AS (
    SELECT trace_id, span_id, toUInt64(toUnixTimestamp64Micro(received_at)) AS arrived
    FROM sightings
    WHERE received_at >= $since::TIMESTAMP
),
stored AS (
    SELECT trace_id, version, (trace_id, span_id) IN (SELECT trace_id, span_id FROM seen) AS is_made
    FROM (SELECT trace_id, span_id, version FROM tool_calls
          WHERE trace_id IN (SELECT trace_id FROM seen)
          UNION ALL
          SELECT trace_id, span_id, version FROM spans
          WHERE trace_id IN (SELECT trace_id FROM seen)) AS found
),
made AS (
    SELECT trace_id,
           coalesce(MAX(version) FILTER (WHERE is_made), 0) AS made_of,
           coalesce(MAX(version) FILTER (WHERE NOT is_made), 0) AS beside
    FROM stored
    GROUP BY trace_id
)
SELECT seen.trace_id AS trace, MIN(arrived) AS first, MAX(arrived) AS last, COUNT(*) AS amount,
       coalesce(MAX(made_of), 0) < greatest(MAX(arrived) * 2, coalesce(MAX(beside), 0)) AS waits
FROM seen
LEFT JOIN made ON made.trace_id = seen.trace_id
GROUP BY 1
ORDER BY last DESC
LIMIT $most::BIGINT
