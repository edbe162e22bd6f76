SELECT time_bucket(INTERVAL 1 DAY, span) AS span, framework, instrumentation, tool, region, outcome, error_class,
-- include summed_calls of calls_6h
;
