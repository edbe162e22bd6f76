-- Whether any call was ever stored, and the newest: tells a first run from an empty filter.
-- Parameters: none.
SELECT COUNT(*) AS calls, MIN("start") AS first_start, MAX("end") AS last_end FROM tool_calls;
