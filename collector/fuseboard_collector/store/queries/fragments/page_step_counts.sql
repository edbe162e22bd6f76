SELECT @keys, step,
       -- include page_counted
       AS n
FROM @these
GROUP BY @keys, step
