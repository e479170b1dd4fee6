"""Counts the requests of a run."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import httpx


@contextmanager
def counted_requests() -> Iterator[Callable[[], int]]:
    """Yields a function that returns how many requests were sent with httpx since then, by all threads."""
    numbers = itertools.count()  # its step is atomic

    def counting(send: Any) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            next(numbers)
            return send(*arguments, **options)

        return counted

    with (
        patch.object(httpx.Client, "send", counting(httpx.Client.send)),
        patch.object(httpx.AsyncClient, "send", counting(httpx.AsyncClient.send)),
    ):
        yield lambda: next(numbers)
