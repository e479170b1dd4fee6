"""Hypothesis without the constants of the source.

Before its first test, it parses every module of the project that was imported, and then it compares what it finds with
the limits of each strategy. With all tests, that takes longer than the tests with random input themselves. A long run
keeps these constants, which make unlikely inputs likely.
"""

from hypothesis.internal.conjecture import providers

from tests.kit.long_tests import IS_LONG_RUN


def forget_constants_of_the_source() -> None:
    """Does nothing if this version of Hypothesis does not look for constants, or not in this place."""
    if not IS_LONG_RUN and hasattr(providers, "_local_constants") and hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants  # they are empty at first
