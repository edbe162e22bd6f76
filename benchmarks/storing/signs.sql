-- What else there is of the same days: processes that say every minute that they live, breakers
-- that open and close, and the spans of model calls around one call in ten.
INSERT INTO heartbeats BY NAME
SELECT $began::TIMESTAMP + to_microseconds((minute * 60 + number % 60) * 1000000) AS time,
       printf('service-%02d', number // 3) AS service,
       printf('service-%02d-%d', number // 3, number % 3) AS instance,
       'production' AS environment, '[]'::JSON AS breakers, '[]'::JSON AS calls_in_flight,
       time AS received_at
FROM range(0, ($days::DOUBLE * 1440)::BIGINT) AS minutes(minute), range(0, 72) AS numbers(number)
ORDER BY minute;

INSERT INTO breaker_transitions BY NAME
WITH turns AS (
    SELECT *, "end" AS time, row_number() OVER (PARTITION BY tool, region, upstream, instance
                                                ORDER BY "end") AS turn
    FROM tool_calls
    WHERE breaker_state IS NOT NULL AND outcome = 'error'
      AND hash(span_id) % 5 = 0
)
SELECT time, tool || COALESCE('/' || region, '') || '/' || upstream AS breaker, tool, region,
       upstream, service, instance, environment,
       CASE turn % 2 WHEN 1 THEN 'closed' ELSE 'open' END AS from_state,
       CASE turn % 2 WHEN 1 THEN 'open' ELSE 'closed' END AS to_state,
       'failure ratio' AS reason, 0.6 AS failure_ratio, error_class, trace_id, time AS received_at
FROM turns
ORDER BY time
LIMIT $transitions::BIGINT;

INSERT INTO spans BY NAME
SELECT trace_id, printf('%016x', hash(span_id)) AS span_id, 'chat model-1' AS name,
       'CLIENT' AS kind, "start", duration_seconds, service, 'UNSET' AS status, session, agent,
       'chat' AS operation, 800 AS input_tokens, 100 AS output_tokens, received_at
FROM tool_calls
WHERE hash(span_id) % 10 = 0;

INSERT INTO dirty_spans
SELECT DISTINCT make_timestamp(microseconds - microseconds % (hours * 3600000000)), hours, FALSE
FROM (SELECT epoch_us("end") - 1 AS microseconds FROM tool_calls
      UNION ALL SELECT epoch_us("end") - 1 FROM attempts
      UNION ALL SELECT epoch_us(time) - 1 FROM breaker_transitions
      UNION ALL SELECT epoch_us(time) - 1 FROM heartbeats) AS moments,
     (VALUES (1), (6), (24)) AS lengths(hours);
