SELECT service, instance, breaker, epoch_us(time), from_state, to_state
FROM breaker_transitions
WHERE received_at >= (
    SELECT max(received_at) - to_seconds($window::DOUBLE) FROM breaker_transitions
);
