-- Calls number $first up to $last, the first at $began, in the order of their ends: 200 tools, a few
-- of which take most calls, 3 of 6 regions each, 24 services of 3 processes, 6 calls a trace, 5 % faults with bad
-- hours of single tools, every eighth call of some tools retried, durations spread as a lognormal
-- distribution, 30 % of calls with arguments out of 40 that come again and again.
CREATE OR REPLACE TEMP TABLE made_calls AS
WITH numbers AS (
    SELECT i,
           hash(i * 16 + 1) / 18446744073709551616.0 AS u1,
           hash(i * 16 + 2) / 18446744073709551616.0 AS u2,
           hash(i * 16 + 3) / 18446744073709551616.0 AS u3,
           hash(i * 16 + 4) / 18446744073709551616.0 AS u4,
           hash(i * 16 + 5) / 18446744073709551616.0 AS u5,
           hash(i // 6 * 16 + 6) AS trace_number
    FROM range($first::BIGINT, $last::BIGINT) AS t(i)
),
placed AS (
    SELECT *,
           floor(200 * u1 * u1 * u1)::INTEGER AS tool_number,
           -- Jitter: calls don't end in the order in which they are stored.
           $began::TIMESTAMP + to_microseconds(
               ((i - $first::BIGINT) * $step_us::DOUBLE)::BIGINT - (u5 * 5000000)::BIGINT
           ) AS "end"
    FROM numbers
),
chosen AS (
    SELECT *,
           (tool_number % 12) * 2 + (trace_number % 2)::INTEGER AS service_number,
           (tool_number + floor(3 * u2 * u2)::INTEGER) % 6 AS region_number,
           -- Of each tool one hour in ninety is a bad one.
           u3 < 0.03 + 0.04 * ((tool_number * 7 % 10) / 10.0)
               + CASE WHEN hash(tool_number + 1000 * (epoch("end")::BIGINT // 3600)) % 90 = 0
                      THEN 0.3 ELSE 0 END AS is_faulty,
           tool_number % 3 = 0 AS is_guarded,
           u4 < 0.3 AS is_common
    FROM placed
),
judged AS (
    SELECT *,
           (hash(i * 16 + 7) % 100)::INTEGER AS dice,
           exp(-2.5 + (tool_number % 17) / 6.0
               + 0.8 * sqrt(-2 * ln(u2 + 1e-12)) * cos(6.283185307 * u5)) AS attempt_length
    FROM chosen
),
ended AS (
    SELECT *,
           CASE WHEN is_faulty THEN CASE WHEN dice < 55 THEN 'error' WHEN dice < 65 THEN 'rejected'
                                         WHEN dice < 85 THEN 'degraded' ELSE 'partial' END
                WHEN dice = 99 THEN 'cancelled' ELSE 'ok' END AS outcome,
           CASE WHEN is_faulty THEN CASE (dice + tool_number) % 10
                WHEN 0 THEN 'L1_input' WHEN 1 THEN 'L2_access' WHEN 2 THEN 'L4_persistent'
                WHEN 3 THEN 'L5_semantic' WHEN 4 THEN 'unclassified'
                ELSE 'L3_transient' END END AS error_class,
           CASE WHEN is_faulty AND dice BETWEEN 55 AND 64 THEN 0
                WHEN is_guarded AND (is_faulty OR dice < 8) THEN 2 + dice % 2
                ELSE 1 END AS attempts
    FROM judged
),
timed AS (
    SELECT *,
           CASE WHEN attempts >= 2 THEN 0.5 * (attempts - 1) ELSE 0 END AS backoff_seconds,
           attempts * attempt_length AS attempt_seconds
    FROM ended
)
SELECT
    printf('%016x%016x', trace_number, trace_number) AS trace_id,
    printf('%016x', hash(i * 16 + 8)) AS span_id,
    "end" - to_microseconds(
        ((attempt_seconds + backoff_seconds) * 1000000)::BIGINT) AS "start",
    "end",
    $began::TIMESTAMP
        + to_microseconds(((i - $first::BIGINT) * $step_us::DOUBLE)::BIGINT) AS received_at,
    round(attempt_seconds + backoff_seconds, 6) AS duration_seconds,
    round(attempt_seconds, 6) AS attempt_seconds,
    printf('tool_%03d', tool_number) AS tool,
    CASE WHEN tool_number % 5 = 0 THEN printf('mcp-%d', tool_number % 7) END AS server,
    ['us-east-1', 'us-west-2', 'eu-west-1', 'eu-central-1', 'ap-south-1', NULL]
        [region_number + 1] AS region,
    CASE WHEN service_number % 8 = 7 THEN 'staging' ELSE 'production' END AS environment,
    printf('service-%02d', service_number) AS service,
    printf('service-%02d-%d', service_number, trace_number % 3) AS instance,
    printf('agent-%d', service_number % 6) AS agent,
    printf('session-%d', trace_number % 100000000) AS session,
    'fuseboard' AS framework,
    outcome,
    error_class,
    CASE WHEN is_faulty THEN ['httpx.ReadTimeout', 'httpx.HTTPStatusError', 'ValueError',
                              'ConnectionResetError', 'KeyError'][dice % 5 + 1] END AS error_type,
    CASE WHEN is_faulty THEN ['timeout_matcher', 'http_5xx_matcher', 'binding']
                             [dice % 3 + 1] END AS classifier_id,
    CASE WHEN is_faulty AND dice % 5 = 1 THEN 500 + dice % 4 END::SMALLINT AS http_status,
    CASE WHEN is_faulty THEN printf('the upstream answered %d', 500 + dice % 4) END
        AS error_message,
    attempts::BIGINT AS attempts,
    CASE WHEN attempts >= 2 THEN backoff_seconds END AS backoff_seconds,
    'tool' AS layer,
    CASE WHEN is_guarded THEN 'closed' END AS breaker_state,
    'live' AS result_source,
    CASE WHEN is_common THEN printf('v1:%016x', hash(tool_number * 1000 + 1 + floor(40 * u3 * u3)::INTEGER))
         ELSE printf('v1:%016x', hash(i * 16 + 9)) END AS args_hash,
    CASE WHEN is_guarded THEN printf('api-%d.example.org', tool_number % 30) END AS upstream,
    NULL::DOUBLE AS cost,
    1::DOUBLE AS weight,
    'fuseboard' AS instrumentation,
    NULL::VARCHAR AS attributes
FROM timed
ORDER BY i;
