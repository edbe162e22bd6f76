-- Spans whose raw rows have to be looked at.
SELECT DISTINCT span, hours FROM dirty_spans;
