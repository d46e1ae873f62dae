"""Finding what must not leave: recognizers, the trained tagger and the engine that joins them."""
