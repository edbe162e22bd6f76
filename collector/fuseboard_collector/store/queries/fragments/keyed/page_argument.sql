COALESCE(totals.argument_text, 'v1:' || printf('%016x', worst.argument))
