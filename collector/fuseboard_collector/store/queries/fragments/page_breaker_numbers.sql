SELECT breaker, instance, tool, region, began, ended,
       row_number() OVER (ORDER BY breaker, instance) AS member,
       dense_rank() OVER (ORDER BY breaker) AS place
FROM members
