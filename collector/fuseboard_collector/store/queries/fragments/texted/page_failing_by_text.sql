UNION ALL
SELECT tool, region, COALESCE(@args_key(args_hash), hash(args_hash)) AS argument,
       CASE WHEN @args_key(args_hash) IS NULL THEN args_hash END AS argument_text, class_of_fault,
       weight
FROM (
    -- include page_keyed_faults
) AS keyed_faults
WHERE args_key IS NULL AND args_hash IS NOT NULL
