DELETE FROM dirty_spans
WHERE hours = $hours::BIGINT AND span IN (SELECT unnest($spans::TIMESTAMP[])) AND is_claimed;
