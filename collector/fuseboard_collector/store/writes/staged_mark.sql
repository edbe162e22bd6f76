INSERT INTO staged_traces BY NAME SELECT * FROM incoming;
