SELECT time, breaker, tool, region, upstream, instance, from_state, to_state, reason, failure_ratio,
       error_class, received_at
FROM breaker_transitions
WHERE time > $last_day::TIMESTAMP AND time <= $until::TIMESTAMP
-- include page_cut_moves
-- include page_stale_moves
