-- Which step a quantile lies in, and at which place within it, follows from the counts: only the
-- durations of these steps are looked at.
WITH steps AS (
    -- include page_step_counts of @these by @keys
),
counted AS (
    SELECT *, SUM(n) OVER (PARTITION BY @keys ORDER BY step)::BIGINT AS upto,
           SUM(n) OVER (PARTITION BY @keys)::BIGINT AS total
    -- A limit that is never reached tells the engine that there are not as many of them as rows.
    FROM (SELECT * FROM steps LIMIT 1000000) AS few_steps
),
marks AS MATERIALIZED (
    SELECT @keys, step, n, total, share, (total * share + 99) // 100 - (upto - n) AS place,
           (row_number() OVER ())::INTEGER AS mark
    FROM counted
    CROSS JOIN
    -- include page_shares
    WHERE (total * share + 99) // 100 > upto - n AND (total * share + 99) // 100 <= upto
    LIMIT 1000000  -- and which side of the join is the small one
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
