-- Which step a quantile lies in follows from the counts; only the durations of these are sorted.
WITH steps AS (
    SELECT @keys, step,
           -- include page_counted
           AS n
    FROM @these
    GROUP BY @keys, step
),
counted AS (
    SELECT *, SUM(n) OVER (PARTITION BY @keys ORDER BY step)::BIGINT AS upto,
           SUM(n) OVER (PARTITION BY @keys)::BIGINT AS total
    FROM steps
),
placed AS (
    SELECT *, upto - n AS below, (total * 50 + 99) // 100 AS at_50,
           (total * 95 + 99) // 100 AS at_95, (total * 99 + 99) // 100 AS at_99
    FROM counted
),
marks AS MATERIALIZED (
    SELECT @keys, step, total, (row_number() OVER ())::INTEGER AS mark,
           CASE WHEN at_50 > below AND at_50 <= upto THEN at_50 - below END AS place_50,
           CASE WHEN at_95 > below AND at_95 <= upto THEN at_95 - below END AS place_95,
           CASE WHEN at_99 > below AND at_99 <= upto THEN at_99 - below END AS place_99
    FROM placed
    WHERE (at_50 > below AND at_50 <= upto) OR (at_95 > below AND at_95 <= upto)
       OR (at_99 > below AND at_99 <= upto)
),
-- Materialised, or the engine would make lists of all durations before it joins.
near AS MATERIALIZED (
    SELECT mark,
           -- include page_near
    FROM @these
    JOIN marks USING (@keys, step)
    -- include page_passed_over
),
sorted AS (SELECT mark, list_sort(list(length)) AS lengths FROM near GROUP BY mark)
SELECT @keys, MAX(lengths[place_50]) AS p50, MAX(lengths[place_95]) AS p95,
       MAX(lengths[place_99]) AS p99, MAX(total)::DOUBLE AS total
FROM sorted
JOIN marks ON marks.mark = sorted.mark
GROUP BY @keys
