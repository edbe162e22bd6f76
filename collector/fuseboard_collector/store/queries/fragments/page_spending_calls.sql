-- Calls that spend the budget of availability or of correctness, and more; see page_spends.
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND (outcome <> 'ok' OR error_class IS NOT NULL)
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
