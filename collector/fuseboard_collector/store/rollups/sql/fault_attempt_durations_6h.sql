SELECT time_bucket(INTERVAL 6 HOUR, span) AS span, tool, region, error_class, step,
-- include summed_steps of fault_attempt_durations_h
;
