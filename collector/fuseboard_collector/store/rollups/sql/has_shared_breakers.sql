-- Whether there is a day in which a breaker was that of several tools or regions, so that filters
-- would have to look into it.
SELECT EXISTS (SELECT 1 FROM breakers_d WHERE is_shared);
