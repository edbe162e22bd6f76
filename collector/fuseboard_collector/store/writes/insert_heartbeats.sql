INSERT INTO heartbeats BY NAME SELECT * FROM incoming;
