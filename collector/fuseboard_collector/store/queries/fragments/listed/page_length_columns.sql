step, length, lengths, weight
