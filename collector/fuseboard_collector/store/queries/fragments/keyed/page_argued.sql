-- Hashes by their numbers; those that are none by a number of their own. Rows whose number is not
-- stored are few, and blocks without such are passed over unread.
SELECT tool, COALESCE(region, 'unknown') AS region, args_key AS argument,
       NULL AS argument_text,
       CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
            ELSE error_class END AS class_of_fault,
       weight, "end" AS last_end
FROM (
    -- include page_all_calls
) AS raw_calls
WHERE args_key > 0
UNION ALL
SELECT tool, COALESCE(region, 'unknown') AS region,
       COALESCE(@args_key(args_hash), hash(args_hash)) AS argument, args_hash AS argument_text,
       CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
            ELSE error_class END AS class_of_fault,
       weight, "end" AS last_end
FROM (
    -- include page_all_calls
) AS raw_calls
WHERE args_key IS NULL AND args_hash IS NOT NULL
