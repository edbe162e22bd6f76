-- The attempts of made calls that failed or needed several: all but the last failed, the last as
-- the call ended.
CREATE OR REPLACE TEMP TABLE made_attempts AS
SELECT trace_id, span_id AS call_span_id,
       printf('%016x', hash(span_id, number)) AS span_id,
       number::BIGINT AS number,
       "start" + to_microseconds(
           ((number - 1) * (attempt_seconds / attempts + 0.5) * 1000000)::BIGINT) AS "start",
       attempt_seconds / attempts AS duration_seconds,
       CASE WHEN number > 1 THEN 0.5 ELSE 0 END AS delay_seconds,
       tool, region, service, environment, agent,
       CASE WHEN number = attempts AND outcome IN ('ok', 'partial') THEN 'success'
            ELSE 'failure' END AS result,
       CASE WHEN number < attempts OR outcome NOT IN ('ok', 'partial')
            THEN coalesce(error_class, 'L3_transient') END AS error_class,
       CASE WHEN number < attempts OR outcome NOT IN ('ok', 'partial')
            THEN coalesce(error_type, 'httpx.ReadTimeout') END AS error_type,
       http_status, NULL::DOUBLE AS cost, weight, received_at
FROM made_calls, unnest(range(1, attempts + 1)) AS numbers(number)
WHERE attempts >= 2 OR (attempts = 1 AND outcome IN ('error', 'rejected', 'degraded'));
