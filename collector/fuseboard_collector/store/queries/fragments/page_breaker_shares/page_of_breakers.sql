AND @among($breakers::VARCHAR[], @these.breaker)
