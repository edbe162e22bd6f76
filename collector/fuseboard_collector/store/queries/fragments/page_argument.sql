worst.argument
