WHERE span < $last_day::TIMESTAMP AND span <> $cut_since::TIMESTAMP
  AND NOT list_contains($stale_days::TIMESTAMP[], span)
