WHERE span >= $six_since::TIMESTAMP AND span < $six_until::TIMESTAMP
  AND span IN (SELECT unnest($sixes::TIMESTAMP[]))
