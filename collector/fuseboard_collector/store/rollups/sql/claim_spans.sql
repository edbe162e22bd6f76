DELETE FROM dirty_spans
WHERE hours = $hours::BIGINT AND span IN (SELECT unnest($spans::TIMESTAMP[]));

INSERT INTO dirty_spans SELECT unnest($spans::TIMESTAMP[]), $hours::BIGINT, TRUE;
