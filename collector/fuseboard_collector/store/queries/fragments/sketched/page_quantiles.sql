-- Within a step of the histogram durations are taken to be spread evenly on the scale of octaves.
-- Counted up in lists: windows over the steps take twice as long.
WITH steps AS (
    SELECT @keys, length, SUM(weight) AS weight
    FROM @these
    GROUP BY @keys, length
),
placed AS (
    SELECT @keys, SUM(weight) AS total,
           list_sort(list({'length': length, 'weight': weight, 'upto': 0::DOUBLE})) AS counts
    FROM steps
    GROUP BY @keys
),
marks AS (
    SELECT @keys, total, share,
           pow(2, (hit.length + (rank - (hit.upto - hit.weight)) / hit.weight) / 8) / 1000 AS seconds
    FROM (SELECT @keys, total, share, rank,
                 list_reduce(counts, lambda found, next:
                             CASE WHEN found.upto >= rank THEN found
                                  ELSE {'length': next.length, 'weight': next.weight,
                                        'upto': found.upto + next.weight} END,
                             {'length': 0::SMALLINT, 'weight': 0::DOUBLE, 'upto': 0::DOUBLE}) AS hit
          FROM (SELECT *, total * share / 100 AS rank
                FROM placed
                CROSS JOIN
                -- include page_shares
               ) AS ranks) AS hits
)
SELECT @keys, MAX(CASE WHEN share = 50 THEN seconds END) AS p50,
       MAX(CASE WHEN share = 95 THEN seconds END) AS p95,
       MAX(CASE WHEN share = 99 THEN seconds END) AS p99, MAX(total) AS total
FROM marks
GROUP BY @keys
