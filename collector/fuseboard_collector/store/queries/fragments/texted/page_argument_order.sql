COALESCE(MAX(argument_text), 'v1:'), argument  -- as the texts would be ordered
