-- Retries per tool and region. First try = the first attempt succeeded; recovered = retried and
-- ended ok or partial; exhausted = retried and did not. All over calls that made an attempt.
-- Parameters: since, until, tools, regions.
WITH calls AS (
    SELECT trace_id, span_id, tool, COALESCE(region, 'unknown') AS region, outcome, attempts,
           "start", weight, backoff_seconds
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND attempts >= 1
),
firsts AS (
    SELECT DISTINCT trace_id, call_span_id
    FROM attempts
    WHERE number = 1 AND result = 'success'
      AND "start" >= (SELECT MIN("start") FROM calls) AND "start" <= $until::TIMESTAMP
)
SELECT calls.tool, calls.region,
       SUM(calls.weight) AS attempted,
       COALESCE(SUM(calls.weight) FILTER (WHERE calls.attempts >= 2), 0) AS retried,
       SUM(calls.weight * calls.attempts) AS attempts_made,
       COALESCE(SUM(calls.weight)
                    FILTER (WHERE firsts.call_span_id IS NOT NULL
                            AND NOT (calls.attempts = 1 AND calls.outcome = 'cancelled')), 0)
           AS first_try,
       COALESCE(SUM(calls.weight) FILTER (WHERE calls.outcome IN ('ok', 'partial')), 0)
           AS succeeded,
       COALESCE(SUM(calls.weight)
                    FILTER (WHERE calls.attempts >= 2 AND calls.outcome IN ('ok', 'partial')), 0)
           AS recovered,
       COALESCE(SUM(calls.weight)
                    FILTER (WHERE calls.attempts >= 2
                            AND calls.outcome IN ('error', 'degraded', 'rejected')), 0)
           AS exhausted,
       SUM(calls.weight * COALESCE(calls.backoff_seconds, 0)) AS backoff_total,
       SUM(calls.weight * calls.attempts) / NULLIF(SUM(calls.weight), 0) AS amplification,
       COALESCE(SUM(calls.weight) FILTER (WHERE calls.attempts >= 2), 0)
           / NULLIF(SUM(calls.weight), 0) AS retry_ratio
FROM calls
LEFT JOIN firsts ON firsts.trace_id = calls.trace_id AND firsts.call_span_id = calls.span_id
GROUP BY 1, 2
ORDER BY retried DESC, attempted DESC, tool, region
LIMIT 1000;
