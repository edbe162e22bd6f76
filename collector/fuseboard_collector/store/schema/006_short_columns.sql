-- What exact answers on long windows are searched by: a byte or eight a row in place of numbers and
-- texts that have to be sorted or decoded. Rows stored before have none; queries see to that.

-- The duration on the scale of the histograms.
ALTER TABLE tool_calls ADD COLUMN step     SMALLINT;
-- The number in args_hash; 0 without arguments, NULL where the hash is of another kind.
ALTER TABLE tool_calls ADD COLUMN args_key UBIGINT;

-- The durations that a step counts, one by one, so that only those next to a quantile are sorted.
ALTER TABLE durations_h          ADD COLUMN lengths DOUBLE[];
ALTER TABLE durations_6h         ADD COLUMN lengths DOUBLE[];
ALTER TABLE attempt_durations_h  ADD COLUMN lengths DOUBLE[];
ALTER TABLE attempt_durations_6h ADD COLUMN lengths DOUBLE[];
-- Calls of all tools and regions together, for series: a hundredth of the rows.
CREATE TABLE overall_15m AS SELECT * EXCLUDE (tool, region) FROM calls_15m LIMIT 0;
CREATE TABLE steps_15m (
    span   TIMESTAMP NOT NULL,
    step   SMALLINT  NOT NULL,
    weight DOUBLE    NOT NULL
);
INSERT INTO dirty_spans
SELECT DISTINCT span, hours, FALSE
FROM (SELECT span, 1 AS hours FROM durations_h
      UNION ALL SELECT span, 1 FROM attempt_durations_h
      UNION ALL SELECT span, 6 FROM durations_6h
      UNION ALL SELECT span, 6 FROM attempt_durations_6h) AS rolled
WHERE NOT EXISTS (SELECT 1 FROM dirty_spans AS marked
                  WHERE marked.span = rolled.span AND marked.hours = rolled.hours
                    AND NOT marked.is_claimed);
