WHERE span >= $hour_since::TIMESTAMP AND span < $hour_until::TIMESTAMP
  AND NOT list_contains($hour_gaps::TIMESTAMP[], span)
