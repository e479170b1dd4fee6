"""The heartbeat of a worker: a row that says which node it belongs to, what it runs and how much it does.

Each worker writes its own row, so that a worker that hangs is noticed. The rows of a node are summed up by the reader.
"""

import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress

import structlog
import trio
from msgspec import Struct

import sso
from sso.config import Settings
from sso.core.bind_address import Bind
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.migrate import HEAD
from sso.nodes.installation_store import delete_silent_workers, delete_worker, write_heartbeat

INTERVAL_S = 5.0
SILENT_S = 15.0  # without a heartbeat
FORGOTTEN_S = 86400.0  # after this time without a heartbeat, the row is deleted
STOP_S = 1.0  # for the last statement of a worker that stops

log = structlog.get_logger()


class WorkerLoad(Struct, frozen=True):
    held_polls: Callable[[], int]
    sockets: Callable[[], int]


class Heartbeat:
    def __init__(self, database: Database, keyring: Keyring, settings: Settings, worker: str, load: WorkerLoad) -> None:
        self._database = database
        self._keyring = keyring
        self._worker = worker
        self._load = load
        self._node = settings.node_name or ""
        self._constants = {
            "node": self._node,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": sso.__version__,
            "schema_version": HEAD,
            "base_url": settings.base_url,
            "workers": settings.workers,
            "forgotten": FORGOTTEN_S,
        }

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Writes the row every few seconds, and deletes it when the worker stops."""
        try:
            while True:
                try:
                    await self.beat()
                except DatabaseError as error:
                    log.warning("node.heartbeat_failed", reason=str(error))
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                await trio.sleep(INTERVAL_S)
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(STOP_S), suppress(DatabaseError):
                await delete_worker(self._database, self._worker)

    async def beat(self) -> None:
        await write_heartbeat(
            self._database,
            self._worker,
            master_keys=[key.id for key in self._keyring.keys],
            held_polls=self._load.held_polls(),
            sockets=self._load.sockets(),
            clock_offset=self._database.clock.host_offset(),
            **self._constants,
        )
        await delete_silent_workers(self._database, self._node, 4 * SILENT_S)


def default_node_name(bind: Bind) -> str:
    """Returns the host name and the port, or the name of the Unix socket. It differs between the nodes of a host."""
    place = bind.path.rpartition("/")[2] if bind.path else bind.port
    return re.sub(r"[^A-Za-z0-9._:-]", "-", f"{socket.gethostname()}:{place}")[-64:]
