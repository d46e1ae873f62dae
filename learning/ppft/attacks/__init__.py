"""Attacks on noised rows, and the same measures on texts, so that every ε comes with what it hides."""
