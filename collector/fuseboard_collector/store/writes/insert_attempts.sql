INSERT INTO attempts BY NAME SELECT * FROM incoming;
