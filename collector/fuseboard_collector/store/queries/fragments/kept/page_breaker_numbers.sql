-- Through a list, which the engine takes for one row: it then joins what is long to these few, and
-- not the other way round.
SELECT unnest(list(numbered), max_depth := 2)
FROM (SELECT breaker, instance, tool, region, began, ended,
             row_number() OVER (ORDER BY breaker, instance) AS member,
             dense_rank() OVER (ORDER BY breaker) AS place
      FROM members) AS numbered
