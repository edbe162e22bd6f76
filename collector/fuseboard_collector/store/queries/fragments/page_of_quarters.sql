WHERE span >= $hour_since::TIMESTAMP AND span < $hour_until::TIMESTAMP
  AND (span < $hour_hole_since::TIMESTAMP OR span >= $hour_hole_until::TIMESTAMP)
  AND NOT list_contains($hour_gaps::TIMESTAMP[], time_bucket(INTERVAL 1 HOUR, span))
