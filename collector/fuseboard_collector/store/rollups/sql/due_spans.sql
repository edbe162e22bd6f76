-- Spans that are over and not rolled up. Six hours are the sum of hours, days of both: what is
-- shorter comes first.
SELECT DISTINCT span, hours
FROM dirty_spans
WHERE span + to_hours(hours) <= $closed::TIMESTAMP
  AND (hours = 1
       OR NOT EXISTS (
           SELECT 1 FROM dirty_spans AS part
           WHERE part.hours < dirty_spans.hours AND part.span >= dirty_spans.span
             AND part.span < dirty_spans.span + to_hours(dirty_spans.hours)
       ))
ORDER BY hours, span DESC;
