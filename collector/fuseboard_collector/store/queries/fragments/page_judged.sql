-- Few rows are left to judge where they are added up by outcome and class before.
SELECT *,
       outcome IN ('error', 'rejected') AND COALESCE(error_class, 'unclassified') <> 'L1_input'
           AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
           AS is_error,
       (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
           AND @among($classes::VARCHAR[], COALESCE(error_class, 'unclassified'))
           AS is_fault
FROM @these
