MAX(argument_text)
