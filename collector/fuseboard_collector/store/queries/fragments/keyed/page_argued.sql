-- Hashes by their numbers; those that are none by a number of their own. Rows whose number is not
-- stored are few, and blocks without such are passed over unread.
SELECT tool, region, args_key AS argument, NULL AS argument_text, class_of_fault, weight, last_end
FROM (
    -- include page_keyed_calls
) AS keyed_calls
WHERE args_key > 0
UNION ALL
SELECT tool, region, COALESCE(@args_key(args_hash), hash(args_hash)) AS argument,
       CASE WHEN @args_key(args_hash) IS NULL THEN args_hash END AS argument_text, class_of_fault,
       weight, last_end
FROM (
    -- include page_keyed_calls
) AS keyed_calls
WHERE args_key IS NULL AND args_hash IS NOT NULL
