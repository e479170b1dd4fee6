"""Several nodes with one database. Each has its own data directory and address, and may have a wrong clock."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from sso.core.encryption import MasterKey
from tests.kit.server import QUICK, Server
from tests.kit.shifted_clock import shifted


class Node(Server):
    """A node whose own address differs from the base URL that it shares with the others."""

    def __init__(
        self, folder: Path, settings: dict[str, str], clock_shift_s: float = 0, program: Sequence[str] = ()
    ) -> None:
        folder.mkdir(parents=True)
        super().__init__(folder, settings | (shifted(clock_shift_s) if clock_shift_s else {}), program)
        self.url = f"http://{settings['SSO_BIND']}"
        self.http = self.client()

    def start(self, *options: str) -> None:
        super().start(*options)
        self.settings["SSO_BIND"] = self.url.removeprefix("http://")

    def client(self, **options: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, **options)  # type: ignore[arg-type]


@contextmanager
def running_nodes(
    folder: Path, dsn: str, clock_shifts: Sequence[float] = (0, 0), program: Sequence[str] = (), **settings: str
) -> Iterator[list[Node]]:
    shared = QUICK | {
        "SSO_SINGLE_NODE": "",
        "SSO_DATABASE_URL": dsn,
        "SSO_SECRET_KEY": MasterKey.generate().text(),
        "SSO_RATE_LOGIN": "0",
        "SSO_LOG_FORMAT": "json",
    }
    # Addresses of the loopback network that nothing else uses, so that the ports are free.
    addresses = [f"127.{'.'.join(str(random.randint(1, 250)) for _ in range(3))}:8000" for _ in clock_shifts]
    with ExitStack() as stack:
        nodes = []
        for number, (address, shift) in enumerate(zip(addresses, clock_shifts, strict=True), 1):
            own = {"SSO_BIND": address, "SSO_BASE_URL": f"http://{addresses[0]}", "SSO_NODE_NAME": f"node{number}"}
            node = Node(folder / f"node{number}", shared | own | settings, shift, program)
            node.start()
            stack.callback(node.stop)
            stack.enter_context(node.http)
            nodes.append(node)
        yield nodes
