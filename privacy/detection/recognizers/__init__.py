"""Recognizers of identifiers by form: one family a file, collected by ``privacy.detection.registry``."""
