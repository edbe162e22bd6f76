SELECT tool, argument, argument_text, class_of_fault, weight
FROM argued
WHERE class_of_fault IS NOT NULL
