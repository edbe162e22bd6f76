SELECT *,
       outcome IN ('error', 'rejected') AND COALESCE(error_class, 'unclassified') <> 'L1_input'
           AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
           AS is_error,
       (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
           AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
           AS is_fault
FROM (
    -- include page_cells
) AS cells
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
