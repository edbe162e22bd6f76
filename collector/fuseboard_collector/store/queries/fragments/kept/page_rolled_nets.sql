UNION ALL
SELECT span, place, @closed_in(last_to) - @closed_in(first_from),
       @held_in(last_to) - @held_in(first_from), 0, 1
FROM breakers_d
JOIN places ON places.breaker = breakers_d.breaker
-- include page_of_kept_days
  AND span >= $since::TIMESTAMP
  AND @among($tools::VARCHAR[], breakers_d.tool)
  AND @among($regions::VARCHAR[], breakers_d.region)
