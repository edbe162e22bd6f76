WHERE span >= $day_since::TIMESTAMP AND span < $day_until::TIMESTAMP
  AND (span < $day_hole_since::TIMESTAMP OR span >= $day_hole_until::TIMESTAMP)
  AND NOT list_contains($day_gaps::TIMESTAMP[], span)
