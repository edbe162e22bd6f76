COALESCE(MAX(argument_text), 'v1:' || printf('%016x', argument))
