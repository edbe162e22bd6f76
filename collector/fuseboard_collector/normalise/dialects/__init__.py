"""One module per family of instrumentations: where their spans say what of a call."""
