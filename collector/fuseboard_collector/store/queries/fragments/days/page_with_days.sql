UNION ALL
SELECT @keys FROM @these
-- include page_of_days
