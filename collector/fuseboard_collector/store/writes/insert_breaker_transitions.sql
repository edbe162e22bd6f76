INSERT INTO breaker_transitions BY NAME SELECT * FROM incoming;
