-- Which step a quantile lies in, and at which place within it, follows from the counts: only the
-- durations of these steps are looked at.
WITH steps AS (
    -- include page_step_counts of @these by @keys
),
placed AS (
    SELECT @keys, SUM(n)::BIGINT AS total,
           list_sort(list({'step': step, 'n': n, 'upto': 0::BIGINT})) AS counts
    FROM steps
    GROUP BY @keys
),
-- Counted up as far as the quantile's rank: a window over the steps takes twice as long to set up.
marks AS MATERIALIZED (
    SELECT @keys, hit.step AS step, hit.n AS n, total, share, hit.n - (hit.upto - rank) AS place,
           (row_number() OVER ())::INTEGER AS mark
    FROM (SELECT @keys, total, share, rank,
                 list_reduce(counts, lambda found, next:
                             CASE WHEN found.upto >= rank THEN found
                                  ELSE {'step': next.step, 'n': next.n,
                                        'upto': found.upto + next.n} END,
                             {'step': 0::SMALLINT, 'n': 0::BIGINT, 'upto': 0::BIGINT}) AS hit
          FROM (SELECT *, (total * share + 99) // 100 AS rank
                FROM placed
                CROSS JOIN
                -- include page_shares
               ) AS ranks) AS hits
    WHERE total > 0
    LIMIT 1000000  -- never reached, but tells the engine which side of the join is the small one
),
-- With as many values below or above all others as it takes to have the one at its place in the
-- middle: medians are found in half of the time that sorting takes. Materialised, or the engine
-- would keep all durations apart before it joins.
near AS MATERIALIZED (
    SELECT mark,
           -- include page_near
    FROM @these
    JOIN marks USING (@keys, step)
    UNION ALL
    SELECT mark, unnest(list_resize([]::DOUBLE[], abs(n - 2 * place),
                                    CASE WHEN 2 * place <= n THEN '-inf' ELSE 'nan' END::DOUBLE))
    FROM marks
),
medians AS (SELECT mark, quantile_disc(length, 0.5) AS length FROM near GROUP BY mark)
SELECT @keys, MAX(CASE WHEN share = 50 THEN length END) AS p50,
       MAX(CASE WHEN share = 95 THEN length END) AS p95,
       MAX(CASE WHEN share = 99 THEN length END) AS p99, MAX(total)::DOUBLE AS total
FROM medians
JOIN marks ON marks.mark = medians.mark
GROUP BY @keys
