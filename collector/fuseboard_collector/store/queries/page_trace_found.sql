-- How much there is of a trace in the window, and when the newest of it was: what tells where to
-- read on. Trace ids have no index, so the window bounds what is read. Parameters: since, until,
-- trace_id.
SELECT (SELECT COUNT(*) FROM tool_calls
        WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
          AND trace_id = $trace_id::VARCHAR) AS calls,
       (SELECT MAX("end") FROM tool_calls
        WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
          AND trace_id = $trace_id::VARCHAR) AS last_end,
       (SELECT COUNT(*) FROM spans
        WHERE "start" > $since::TIMESTAMP AND "start" <= $until::TIMESTAMP
          AND trace_id = $trace_id::VARCHAR) AS context,
       (SELECT MAX("start") FROM spans
        WHERE "start" > $since::TIMESTAMP AND "start" <= $until::TIMESTAMP
          AND trace_id = $trace_id::VARCHAR) AS last_start;
