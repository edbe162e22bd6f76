SELECT time_bucket(INTERVAL 1 DAY, span) AS span, tool, region, error_class, step,
-- include summed_steps of fault_durations_6h
;
