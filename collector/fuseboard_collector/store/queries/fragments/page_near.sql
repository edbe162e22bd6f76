length
