SELECT DISTINCT time_bucket(INTERVAL 1 DAY, span) AS span, tool, region, upstream, instance
FROM guards_h
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP;
