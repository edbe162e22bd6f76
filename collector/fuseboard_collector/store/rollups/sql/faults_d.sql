SELECT time_bucket(INTERVAL 1 DAY, span) AS span, tool, region, error_class, classifier_id,
       error_type, http_status,
-- include summed_faults of faults_6h
;
