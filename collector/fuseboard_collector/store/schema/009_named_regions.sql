-- Rollups of calls, attempts and faults name the region of every row. Readers show calls without one
-- as of an unknown region; to say so for each of a million rows took a sixth of an answer's time.
UPDATE calls_15m                  SET region = 'unknown' WHERE region IS NULL;
UPDATE calls_h                    SET region = 'unknown' WHERE region IS NULL;
UPDATE calls_6h                   SET region = 'unknown' WHERE region IS NULL;
UPDATE calls_d                    SET region = 'unknown' WHERE region IS NULL;
UPDATE durations_h                SET region = 'unknown' WHERE region IS NULL;
UPDATE durations_6h               SET region = 'unknown' WHERE region IS NULL;
UPDATE durations_d                SET region = 'unknown' WHERE region IS NULL;
UPDATE attempt_durations_h        SET region = 'unknown' WHERE region IS NULL;
UPDATE attempt_durations_6h       SET region = 'unknown' WHERE region IS NULL;
UPDATE attempt_durations_d        SET region = 'unknown' WHERE region IS NULL;
UPDATE fault_durations_h          SET region = 'unknown' WHERE region IS NULL;
UPDATE fault_durations_6h         SET region = 'unknown' WHERE region IS NULL;
UPDATE fault_durations_d          SET region = 'unknown' WHERE region IS NULL;
UPDATE fault_attempt_durations_h  SET region = 'unknown' WHERE region IS NULL;
UPDATE fault_attempt_durations_6h SET region = 'unknown' WHERE region IS NULL;
UPDATE fault_attempt_durations_d  SET region = 'unknown' WHERE region IS NULL;
UPDATE failed_attempts_6h         SET region = 'unknown' WHERE region IS NULL;
UPDATE failed_attempts_d          SET region = 'unknown' WHERE region IS NULL;
UPDATE faults_6h                  SET region = 'unknown' WHERE region IS NULL;
UPDATE faults_d                   SET region = 'unknown' WHERE region IS NULL;
UPDATE arguments_6h               SET region = 'unknown' WHERE region IS NULL;
UPDATE arguments_d                SET region = 'unknown' WHERE region IS NULL;

-- Faults by the hour: up to six hours of raw rows were searched for them.
CREATE TABLE faults_h (
    span          TIMESTAMP NOT NULL,
    tool          VARCHAR   NOT NULL,
    region        VARCHAR   NOT NULL,
    error_class   VARCHAR   NOT NULL,     -- unclassified where the call has none
    classifier_id VARCHAR,
    error_type    VARCHAR,
    http_status   SMALLINT,
    weight        DOUBLE    NOT NULL,
    last_end      TIMESTAMP NOT NULL
);
INSERT INTO faults_h
SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span, tool,
       COALESCE(region, 'unknown') AS region, COALESCE(error_class, 'unclassified') AS error_class,
       classifier_id, error_type, http_status, SUM(weight) AS weight, MAX("end") AS last_end
FROM tool_calls
WHERE error_class IS NOT NULL OR outcome IN ('error', 'rejected')
GROUP BY ALL
ORDER BY span, tool, region;

-- The arguments of faults by the hour, all of them.
CREATE TABLE fault_arguments_h (
    span        TIMESTAMP NOT NULL,
    tool        VARCHAR   NOT NULL,
    region      VARCHAR   NOT NULL,
    args_hash   VARCHAR,                  -- where it has no number
    args_key    UBIGINT,
    error_class VARCHAR   NOT NULL,       -- unclassified where the call has none
    weight      DOUBLE    NOT NULL
);
INSERT INTO fault_arguments_h
SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span, tool,
       COALESCE(region, 'unknown') AS region,
       CASE WHEN args_key IS NULL THEN args_hash END AS args_hash, args_key,
       COALESCE(error_class, 'unclassified') AS error_class, SUM(weight) AS weight
FROM tool_calls
WHERE args_hash IS NOT NULL AND (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
GROUP BY ALL
ORDER BY span, tool, region;
