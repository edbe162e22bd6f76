-- When each process, and each version of a service in it, sent its first and its last heartbeat;
-- those heard of last come first, so that none of today is cut off.
-- Parameters: seen_since (begin of what is looked at), until.
SELECT instance, COALESCE(service, 'unknown') AS service, version,
       MIN(time) AS first_beat, MAX(time) AS last_beat
FROM heartbeats
WHERE time > $seen_since::TIMESTAMP AND time <= $until::TIMESTAMP
GROUP BY 1, 2, 3
ORDER BY last_beat DESC, instance, 2, 3
LIMIT 2000;
