-- What the models of some sessions read and wrote, as far as spans tell it, by kind of span.
-- Parameters: since, until, sessions.
SELECT session, operation, COUNT(*) AS spans, SUM(input_tokens)::BIGINT AS read_tokens,
       SUM(output_tokens)::BIGINT AS written_tokens, @oldest(input_tokens, "start") AS first_read,
       MAX(input_tokens) AS most_read
FROM spans
WHERE "start" > $since::TIMESTAMP AND "start" <= $until::TIMESTAMP
  AND @among($sessions::VARCHAR[], session)
  AND session IS NOT NULL
  AND (input_tokens IS NOT NULL OR output_tokens IS NOT NULL)
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 5000;
