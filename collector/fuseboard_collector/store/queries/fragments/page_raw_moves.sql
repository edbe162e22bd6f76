SELECT * FROM breaker_transitions WHERE time <= $until::TIMESTAMP
