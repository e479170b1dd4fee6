"""A worker: open what must be open, in order; serve; close it in reverse."""

import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import structlog
import trio

from sso.app import build_app
from sso.config import Settings
from sso.core.background import keep_running
from sso.core.keys import ALGORITHMS, CHEAP
from sso.db import cleaner
from sso.db.errors import DatabaseError
from sso.health import Health
from sso.metrics import Metrics
from sso.perm.stores.seed import seed_central_application
from sso.serve import hypercorn, process_tuning
from sso.serve.http1 import server as lane
from sso.serve.http1.balance import WorkerSlot
from sso.serve.server_limits import ServerLimits
from sso.services import Services, open_services
from sso.web.security_headers import data_headers

RETRY_S = 0.2
log = structlog.get_logger()


async def run_worker(
    settings: Settings, dsn: str, sockets: Sequence[socket.socket], ready: Callable[[], None], place: WorkerSlot
) -> None:
    """Serve until SIGTERM. A background task that fails is started again, and the worker goes on serving."""
    health = Health()
    stop = trio.Event()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with open_services(settings, dsn) as services, trio.open_nursery() as background:
            background.start_soon(_stop_on_signal, signals, health, stop, services)
            await _open(services, background)
            app = build_app(services, health, Metrics(settings.metrics_bind is not None))
            await _serve(settings, app, sockets, stop, ready, place)
            background.cancel_scope.cancel()


async def _serve(
    settings: Settings,
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    place: WorkerSlot,
) -> None:
    process_tuning.tune_process()
    limits = ServerLimits(per_address=settings.connections_per_address, exempt=settings.trusted_proxies)
    serve = hypercorn.serve if settings.http == "hypercorn" else lane.serve
    await serve(app, sockets, stop, ready, limits, data_headers(https=settings.https), place)


async def _open(services: Services, background: trio.Nursery) -> None:
    services.hasher.prepare()
    await _when_database_answers(services)
    background.start_soon(_warm, services)
    await background.start(keep_running, "wakeups", services.wakeups.run)
    await background.start(keep_running, "keys", services.keys.run, services.wakeups)
    await background.start(keep_running, "mail", services.mail_sender.run, services.wakeups)
    await background.start(keep_running, "held polls", services.game.held_polls.run)
    await background.start(keep_running, "heartbeats", services.game.socket_registry.run)
    await background.start(keep_running, "load delay", services.game.backpressure.run)
    await background.start(keep_running, "cleaner", cleaner.run, services.database, services.settings.audit_days)
    await background.start(keep_running, "forwarding monitor", services.forwarding.run, services.database)


async def _warm(services: Services) -> None:
    try:
        await services.database.open_connections()
    except* Exception as group:  # they will be opened when they are needed
        log.warning("connections not opened", reason=str(group.exceptions[0]))


async def _when_database_answers(services: Services) -> None:
    """A worker may be born while the database is away: it waits, rather than dying again and again."""
    said = False
    while True:
        try:
            await services.key_store.ensure_signing_keys(ALGORITHMS[0], sides=CHEAP)
            await seed_central_application(services.database)
        except DatabaseError as error:
            if not said:
                log.warning("waiting for the database", reason=str(error))
            said = True
            await trio.sleep(RETRY_S)
        else:
            return


async def _stop_on_signal(signals: AsyncIterator[int], health: Health, stop: trio.Event, services: Services) -> None:
    async for number in signals:
        log.info("draining", signal=signal.Signals(number).name, polls=len(services.game.held_polls))
        health.draining = True
        stop.set()
        services.game.drain()
