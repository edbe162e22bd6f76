length, weight
