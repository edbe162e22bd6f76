step, length, weight
