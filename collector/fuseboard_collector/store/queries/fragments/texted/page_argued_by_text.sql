UNION ALL
-- And those that are none, or were stored before numbers were, by a number made of their text.
SELECT tool, region, COALESCE(@args_key(args_hash), hash(args_hash)) AS argument,
       CASE WHEN @args_key(args_hash) IS NULL THEN args_hash END AS argument_text, class_of_fault,
       weight, last_end
FROM (
    -- include page_keyed_calls
) AS keyed_calls
WHERE args_key IS NULL AND args_hash IS NOT NULL
