UNION ALL
SELECT tool, region, upstream, instance
FROM guards_h
WHERE span IN (SELECT unnest($hours::TIMESTAMP[]))
