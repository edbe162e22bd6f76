WHERE span >= $fine_since::TIMESTAMP AND span < $fine_until::TIMESTAMP
  AND span IN (SELECT unnest($hours::TIMESTAMP[]))
