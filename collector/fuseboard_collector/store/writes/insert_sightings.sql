INSERT INTO sightings BY NAME SELECT * FROM incoming;
