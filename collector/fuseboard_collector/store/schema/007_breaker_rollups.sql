-- What breakers did, by day, so that their history need not be read; and heartbeats by day.

-- The first and the last transition of each process's breaker.
CREATE TABLE breakers_d (
    span          TIMESTAMP NOT NULL,
    breaker       VARCHAR   NOT NULL,
    instance      VARCHAR   NOT NULL,     -- empty where unknown
    tool          VARCHAR   NOT NULL,
    region        VARCHAR   NOT NULL,
    upstream      VARCHAR,
    first_time    TIMESTAMP NOT NULL,
    first_from    VARCHAR   NOT NULL,     -- its state before the first
    last_time     TIMESTAMP NOT NULL,
    last_to       VARCHAR   NOT NULL,     -- its state after the last
    reason        VARCHAR,                -- this and what follows are the last's
    failure_ratio DOUBLE,
    error_class   VARCHAR,
    is_shared     BOOLEAN   NOT NULL      -- by several tools or regions
);

-- By how many processes those whose breaker is closed, and those whose is not, change with each
-- moment of transitions, and since the span began. The latter in 15 bits a state: unknown,
-- half_open, open, isolated.
CREATE TABLE breaker_steps_d (
    span    TIMESTAMP NOT NULL,
    breaker VARCHAR   NOT NULL,
    steps   STRUCT(
        moment        TIMESTAMP,
        closed        BIGINT,
        held          BIGINT,
        closed_so_far BIGINT,
        held_so_far   BIGINT
    )[]               NOT NULL
);

CREATE TABLE beats_d AS SELECT * FROM beats_h LIMIT 0;

INSERT INTO dirty_spans
SELECT DISTINCT time_bucket(INTERVAL 1 DAY, moment - INTERVAL 1 MICROSECOND), 24, FALSE
FROM (SELECT time AS moment FROM breaker_transitions
      UNION ALL SELECT time FROM heartbeats) AS moments;
