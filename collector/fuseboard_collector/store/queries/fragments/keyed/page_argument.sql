COALESCE(worst.other_text, 'v1:' || printf('%016x', worst.argument))
