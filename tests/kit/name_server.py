"""Name servers: one whose names are bound to another address after a while (DNS rebinding), for example."""

import socket
from collections.abc import Callable
from typing import Any

import pytest


def resolve_names(monkeypatch: pytest.MonkeyPatch, resolve: Callable[[Any], str]) -> None:
    """Lets ``resolve`` return the address of every name. Numeric addresses are those that they are."""
    original = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        try:
            return original(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)
        except socket.gaierror:
            if flags & socket.AI_NUMERICHOST:
                raise
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (resolve(host), port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def change_addresses(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Resolves every name to one address at first, and to another one afterwards (DNS rebinding)."""
    remaining = list(addresses)
    resolve_names(monkeypatch, lambda _: remaining.pop(0) if len(remaining) > 1 else remaining[0])
