-- Answers that are not simply the tool's own of this moment, or that tell how old they are or how far
-- to trust them. Few of all calls, of columns that no rollup has.
SELECT *, COALESCE(region, 'unknown') AS place
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
  AND @among($classes::VARCHAR[], error_class)
  AND (outcome IN ('degraded', 'partial')
       OR outcome = 'ok' AND (result_source <> 'live' OR confidence IS NOT NULL
                              OR result_age_seconds IS NOT NULL))
