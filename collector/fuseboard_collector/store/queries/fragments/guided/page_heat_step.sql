greatest(0, step >> 2)::INTEGER
