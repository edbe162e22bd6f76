WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
  AND NOT list_contains($six_gaps::TIMESTAMP[], span)
