"""Hypothesis without the constants of the source, and with the list of the characters of UTF-8.

Before its first test, it parses every module of the project that was imported, and then it compares what it finds with
the limits of each strategy. With all tests, that takes longer than the tests with random input themselves. A long run
keeps these constants, which make unlikely inputs likely.

In a new checkout, each process would try every character before its first random text, which takes three seconds.
"""

import gzip
import json
import sys
from contextlib import suppress

from hypothesis.internal.charmap import charmap_file
from hypothesis.internal.conjecture import providers

from tests.kit.long_tests import IS_LONG_RUN


def forget_constants_of_the_source() -> None:
    """Does nothing if this version of Hypothesis does not look for constants, or not in this place."""
    if not IS_LONG_RUN and hasattr(providers, "_local_constants") and hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants  # they are empty at first


def store_characters_of_utf8() -> None:
    """Writes the file that Hypothesis would write: all characters but surrogates. Another version may not read it."""
    file = charmap_file("codec-v2-utf-8")
    with suppress(OSError):
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(gzip.compress(json.dumps([[[0, 0xD7FF], [0xE000, sys.maxunicode]], []]).encode()))
