-- For how long each breaker was in each state but closed, by bucket: seconds of the worst state over
-- processes (unknown as in page_breaker_timeline), for windows of which a bar holds more than one
-- stretch. periods: how often it went from closed (or unknown) to anything else in the bucket (what it
-- was at the window's start already is none); reopened: those of them that came within a minute after
-- the period before.
-- Parameters: since, until, tools, regions, breakers (their names), bucket_us.
WITH
-- include page_breaker_stretches
,
-- What came before a stretch, and before that.
followed AS (
    SELECT place, severity, began, ended,
           CASE WHEN lag(place, 1, 0) OVER ordered = place
                THEN lag(severity, 1, 0) OVER ordered ELSE -1 END AS severity_before,
           CASE WHEN lag(place, 2, 0) OVER ordered = place
                THEN lag(severity, 2, 0) OVER ordered ELSE -1 END AS severity_earlier,
           lag(began, 1, began) OVER ordered AS began_before
    FROM stretches
    WINDOW ordered AS (ORDER BY place, began)
),
-- One row for each bucket that a stretch is in.
pieces AS (
    SELECT place, severity, slot,
           @micros(greatest(began, @slot_start(slot, $bucket_us::BIGINT)),
                   least(ended, @slot_start((slot + 1), $bucket_us::BIGINT))) AS length,
           CASE WHEN severity >= 2 AND severity_before < 2 AND began > $since::TIMESTAMP
                 AND slot = @slot(began + INTERVAL 1 MICROSECOND, $bucket_us::BIGINT)
                THEN 1 ELSE 0 END AS is_begun,
           CASE WHEN severity_earlier >= 2 AND began <= began_before + INTERVAL 1 MINUTE
                THEN 1 ELSE 0 END AS is_soon
    FROM followed @each_number(@slot(began + INTERVAL 1 MICROSECOND, $bucket_us::BIGINT),
                               @slot(ended, $bucket_us::BIGINT) + 1, slot)
    WHERE severity > 0
)
SELECT places.breaker AS breaker, @slot_start(slot, $bucket_us::BIGINT) AS bucket,
       CASE severity WHEN 4 THEN 'isolated' WHEN 3 THEN 'open' WHEN 2 THEN 'half_open'
                     ELSE 'unknown' END AS state,
       SUM(length) / 1000000.0 AS seconds,
       COUNT(CASE WHEN is_begun = 1 THEN 1 END) AS periods,
       COUNT(CASE WHEN is_begun = 1 AND is_soon = 1 THEN 1 END) AS reopened
FROM pieces
JOIN (SELECT place, MIN(breaker) AS breaker
      FROM numbered
      GROUP BY place) AS places ON places.place = pieces.place
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT 20000;
