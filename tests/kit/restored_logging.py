"""Restores the logging configuration, which a command changes that runs in the process of the tests."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def restored_logging() -> Iterator[None]:
    config, root = structlog.get_config(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        structlog.configure(**config)
        if root.handlers != handlers:
            root.handlers[:] = handlers
        if root.level != level:  # to set it makes all loggers forget their levels
            root.setLevel(level)
