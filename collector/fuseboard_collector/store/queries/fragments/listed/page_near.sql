unnest(COALESCE(lengths, [length])) AS length
