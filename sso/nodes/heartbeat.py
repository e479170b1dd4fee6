"""The heartbeat of a worker: a row that says which node it belongs to, what it runs and how much it does.

Each worker writes its own row, so that a worker that hangs is noticed. The rows of a node are summed up by the reader.
"""

import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog
import trio

import sso
from sso.config import Settings
from sso.core.bind_address import Bind
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.migrate import HEAD
from sso.db.statement import Statement

INTERVAL_S = 5.0
SILENT_S = 15.0  # without a heartbeat
FORGOTTEN_S = 86400.0  # after this time without a heartbeat, the row is deleted
STOP_S = 1.0  # for the last statement of a worker that stops

# A lost heartbeat does no harm, so the commit waits neither for the disk nor for a standby.
_BEAT = Statement(
    """INSERT INTO node_workers AS w (worker, node, host, pid, version, schema_version, base_url, master_keys, workers,
        held_polls, sockets, clock_offset, started, last_seen, expires)
    SELECT :worker, :node, :host, :pid, :version, :schema_version, :base_url, :master_keys, :workers, :held_polls,
        :sockets, :clock_offset, now(), now(), now() + make_interval(secs => :forgotten)
    FROM set_config('synchronous_commit', 'off', true)
    ON CONFLICT (worker) DO UPDATE SET master_keys = excluded.master_keys, held_polls = excluded.held_polls,
        sockets = excluded.sockets, clock_offset = excluded.clock_offset, last_seen = excluded.last_seen,
        expires = excluded.expires"""
)
# Rows of workers of this node that died. A worker that only hung writes its row again.
_DELETE_SILENT = Statement(
    "DELETE FROM node_workers WHERE node = :node AND last_seen < now() - make_interval(secs => :silent)"
)
_DELETE = Statement("DELETE FROM node_workers WHERE worker = :worker")
log = structlog.get_logger()


@dataclass(frozen=True)
class WorkerLoad:
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
                await self._database.value(_DELETE, worker=self._worker)

    async def beat(self) -> None:
        await self._database.value(
            _BEAT,
            worker=self._worker,
            master_keys=[key.id for key in self._keyring.keys],
            held_polls=self._load.held_polls(),
            sockets=self._load.sockets(),
            clock_offset=self._database.clock.host_offset(),
            **self._constants,
        )
        await self._database.value(_DELETE_SILENT, node=self._node, silent=4 * SILENT_S)


def default_node_name(bind: Bind) -> str:
    """Returns the host name and the port, or the name of the Unix socket. It differs between the nodes of a host."""
    place = bind.path.rpartition("/")[2] if bind.path else bind.port
    return re.sub(r"[^A-Za-z0-9._:-]", "-", f"{socket.gethostname()}:{place}")[-64:]
