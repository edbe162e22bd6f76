-- Whether any call was ever stored, and the newest: tells a first run from an empty filter. The
-- first and the last in order are found without reading the rest. Parameters: none.
SELECT (SELECT COUNT(*) FROM tool_calls) AS calls,
       (SELECT "start" FROM tool_calls ORDER BY "start" LIMIT 1) AS first_start,
       (SELECT "end" FROM tool_calls ORDER BY "end" DESC LIMIT 1) AS last_end;
