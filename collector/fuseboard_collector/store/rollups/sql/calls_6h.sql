SELECT time_bucket(INTERVAL 6 HOUR, span) AS span, framework, instrumentation, tool, region, outcome, error_class,
-- include summed_calls of calls_h
;
