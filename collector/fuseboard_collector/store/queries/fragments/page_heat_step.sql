greatest(0, @step(length, 2))::INTEGER
