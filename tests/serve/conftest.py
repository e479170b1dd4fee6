"""Fixtures for the tests of the HTTP servers."""

import pytest
from trio.testing import MockClock


@pytest.fixture
def virtual_clock() -> MockClock:
    """Makes timeouts independent of the speed of the machine: time passes only while all tasks wait, and then at once.

    The threshold gives the kernel time to deliver bytes between two sockets of this process.
    """
    return MockClock(autojump_threshold=0.01)
