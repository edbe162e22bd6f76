INSERT INTO spans BY NAME
SELECT * REPLACE (attributes::JSON::VARIANT AS attributes) FROM incoming;
