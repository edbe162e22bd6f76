unnest(list_distinct(list_concat(
    max_by(args_hash, score, 50),
    max_by(args_hash, score, 100) FILTER (WHERE score >= 2000000)
)))
