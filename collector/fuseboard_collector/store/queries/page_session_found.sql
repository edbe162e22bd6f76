-- How many calls of a session ended in the window, and when the first and the last did.
-- Parameters: since, until, session.
SELECT COUNT(*) AS calls, MIN("end") AS first_end, MAX("end") AS last_end
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND session = $session::VARCHAR;
