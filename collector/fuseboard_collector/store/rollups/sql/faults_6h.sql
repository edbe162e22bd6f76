SELECT time_bucket(INTERVAL 6 HOUR, span) AS span, tool, region, error_class, classifier_id,
       error_type, http_status,
-- include summed_faults of faults_h
;
