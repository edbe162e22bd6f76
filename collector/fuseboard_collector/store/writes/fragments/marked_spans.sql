SELECT DISTINCT make_timestamp(hour_us - hour_us % (hours * 3600000000)) AS span, hours, FALSE
FROM (SELECT DISTINCT (epoch_us(moment) - 1) // 3600000000 * 3600000000 AS hour_us
      FROM moments) AS touched,
     (VALUES (1), (6), (24)) AS lengths(hours)
WHERE NOT EXISTS (
    SELECT 1 FROM dirty_spans AS marked
    WHERE marked.span = make_timestamp(hour_us - hour_us % (lengths.hours * 3600000000))
      AND marked.hours = lengths.hours AND NOT marked.is_claimed
)
