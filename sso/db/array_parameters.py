"""Makes arrays as parameters of statements cheaper: those of a batch have a value of each item.

asyncpg asks the abstract base classes of Python of every value whether it is a container, so that an array could have
arrays as values. A login asked them 375 times. The concrete types answer in a tenth of the time.

This relies on private names of asyncpg; tests/test_private_dependencies.py checks them.
"""

from collections import OrderedDict, deque

from asyncpg.protocol import protocol

_VIEWS = tuple(type(view) for kind in (dict, OrderedDict) for view in (kind().keys(), kind().values()))
CONTAINERS = (list, tuple, set, frozenset, deque, range, *_VIEWS)  # without text, bytes and mappings


def install() -> None:
    protocol.IterableABC = protocol.SizedABC = CONTAINERS
    protocol.MappingABC = dict
