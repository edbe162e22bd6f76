-- The first and the last hour that anything is rolled up for.
SELECT MIN(span), MAX(span) FROM callers_h;
