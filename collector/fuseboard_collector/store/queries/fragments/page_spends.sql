-- errors or unsound of page_objective_counts
WHERE outcome IN ('error', 'rejected') AND COALESCE(class_of_call, 'unclassified') <> 'L1_input'
   OR outcome IN ('partial', 'degraded')
   OR outcome = 'ok' AND class_of_call = 'L5_semantic'
