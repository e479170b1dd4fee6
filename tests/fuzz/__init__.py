"""Random inputs for every parser. ``scripts/fuzz parsers`` is the long form of ``test_parsers.py``."""
