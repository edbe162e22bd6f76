SUM(weight)::BIGINT
