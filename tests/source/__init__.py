"""Checks of the source, the catalogues and the documents, which run nothing of the program: ``scripts/check``."""
