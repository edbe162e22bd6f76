-- Which of the rows that come late are there. A row that is sent again began at the same instant,
-- and rows lie about in the order of time: of the file, little more is read than what began then.
SELECT trace_id || span_id AS ids
FROM tool_calls SEMI JOIN late USING (trace_id, span_id, "start")
WHERE "start" BETWEEN $first::TIMESTAMP AND $last::TIMESTAMP
UNION ALL
SELECT trace_id || span_id
FROM attempt_rows SEMI JOIN late USING (trace_id, span_id, "start")
WHERE "start" BETWEEN $first::TIMESTAMP AND $last::TIMESTAMP
UNION ALL
SELECT trace_id || span_id
FROM spans SEMI JOIN late USING (trace_id, span_id, "start")
WHERE "start" BETWEEN $first::TIMESTAMP AND $last::TIMESTAMP
UNION ALL
SELECT trace_id || span_id
FROM sightings SEMI JOIN late USING (trace_id, span_id, "start")
WHERE "start" BETWEEN $first::TIMESTAMP AND $last::TIMESTAMP;
