"""The listening sockets of a service: new ones, or copies from the running service that it replaces."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from sso.config import Settings
from sso.core.bind_address import Bind, parse_binds
from sso.serve.handover import RunningService, SharedFlag, handover_path, is_running, take_listeners
from sso.serve.listeners import BindError, listening


class ServiceListeners(Struct, frozen=True):
    requests: Sequence[socket.socket]
    metrics: Sequence[socket.socket]
    by_bind: Mapping[Bind, socket.socket]
    predecessors: Sequence[RunningService]  # they listen on the same sockets
    handover_path: Path
    handed_over: SharedFlag
    operator: socket.socket | None = None  # for commands; opened after the service has dropped its privileges

    def close_requests(self) -> None:
        for listener in (*self.requests, *([self.operator] if self.operator else ())):
            listener.close()


@contextmanager
def open_listeners(settings: Settings, binds: Sequence[Bind], *, replace: bool) -> Iterator[ServiceListeners]:
    """Opens the listeners for requests and metrics. Raises BindError.

    With ``replace``, addresses that a running service of the same data directory listens on are shared with it.
    """
    metrics_binds = parse_binds(settings.metrics_bind) if settings.metrics_bind else ()
    running = take_listeners(settings.data_dir) if replace else []
    taken = {bind: listener for service in running for bind, listener in service.listeners.items()}
    unused = taken.keys() - {*binds, *metrics_binds}
    for bind in unused:
        taken.pop(bind).close()
    handed_over = SharedFlag()
    with ExitStack() as stack:

        def listen(setting: str, addresses: Sequence[Bind]) -> Sequence[socket.socket]:
            try:
                return stack.enter_context(listening(addresses, taken, handed_over.is_set))
            except BindError as error:
                hint = "" if replace else _hint_at_replace(settings.data_dir)
                raise BindError(f"{error}; set {setting} to another address{hint}") from None

        path = stack.enter_context(handover_path(settings.data_dir))
        requests, metrics = listen("SSO_BIND", binds), listen("SSO_METRICS_BIND", metrics_binds)
        by_bind = {
            bind.bound(listener): listener
            for bind, listener in zip((*binds, *metrics_binds), (*requests, *metrics), strict=True)
        }
        yield ServiceListeners(requests, metrics, by_bind, running, path, handed_over)


def _hint_at_replace(data_dir: Path) -> str:
    if not is_running(data_dir):
        return ""
    directory = data_dir.resolve()
    return f" (the service already runs with {directory}: stop it, or replace it with `sso serve --replace`)"
