SELECT *,
       outcome IN ('error', 'rejected') AND COALESCE(error_class, 'unclassified') <> 'L1_input'
           AND ($classes::VARCHAR[] IS NULL
                OR list_contains($classes::VARCHAR[], COALESCE(error_class, 'unclassified')))
           AS is_error,
       (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
           AND ($classes::VARCHAR[] IS NULL
                OR list_contains($classes::VARCHAR[], COALESCE(error_class, 'unclassified')))
           AS is_fault
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
  AND ($regions::VARCHAR[] IS NULL
       OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
