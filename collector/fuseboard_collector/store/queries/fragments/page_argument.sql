worst.other_text
