SELECT time_bucket(INTERVAL 6 HOUR, span) AS span, tool, region, error_class, classifier_id,
       error_type, http_status, SUM(weight) AS weight, MAX(last_end) AS last_end
FROM faults_h
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY span, tool, region;
