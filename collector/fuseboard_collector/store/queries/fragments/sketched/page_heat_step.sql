greatest(0, floor(length / 4.0))::INTEGER
