"""One TLS context for all HTTP clients of the tests.

Each httpx.Client reads the certificates of all authorities, which takes longer than most tests. Contexts can be shared.
"""

import functools
import os
import ssl
from typing import Any

import certifi

_create = ssl.create_default_context


def share_default_context() -> None:
    """Makes clients that trust the usual authorities share a context. Others, as for a test's own CA, get their own."""
    ssl.create_default_context = _create_or_share


def _create_or_share(*arguments: Any, **options: Any) -> ssl.SSLContext:
    usual = os.environ.get("SSL_CERT_FILE") or certifi.where()
    if not arguments and options == {"cafile": usual}:
        return _shared(usual)
    return _create(*arguments, **options)


@functools.cache
def _shared(authorities: str) -> ssl.SSLContext:
    return _create(cafile=authorities)
