-- Those claimed spans whose rows have not changed since.
SELECT span
FROM dirty_spans
WHERE hours = $hours::BIGINT AND span IN (SELECT unnest($spans::TIMESTAMP[]))
GROUP BY span
HAVING bool_and(is_claimed);
