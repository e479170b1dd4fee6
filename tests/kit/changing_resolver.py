"""Names that are bound to another address after a while (DNS rebinding)."""

from typing import Any

import trio


class ChangingResolver(trio.abc.HostnameResolver):
    """Resolves every name to one address at first, and to another one afterwards (DNS rebinding)."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def getaddrinfo(self, host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        return [(trio.socket.AF_INET, trio.socket.SOCK_STREAM, 6, "", (address, port))]

    async def getnameinfo(self, *_: Any) -> Any:
        raise NotImplementedError
