WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
  AND (span < $six_hole_since::TIMESTAMP OR span >= $six_hole_until::TIMESTAMP)
  AND NOT list_contains($six_gaps::TIMESTAMP[], span)
