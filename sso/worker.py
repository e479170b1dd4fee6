"""A worker process: opens the services, serves requests, and closes the services in reverse order."""

import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
import trio

from sso.admin.operator_api import OperatorApi
from sso.app import build_app
from sso.config import Settings
from sso.core.algorithms import ALGORITHMS, CHEAP_ALGORITHMS
from sso.core.background import keep_running
from sso.core.omitted_modules import restore_hypercorn
from sso.core.urls import parse_header_list
from sso.db import cleanup, clock_sync
from sso.db.clock_sync import measure_clock
from sso.db.errors import DatabaseError
from sso.db.figures import FigureWriter
from sso.health import Health
from sso.mail.sender import MailQueueMonitor
from sso.nodes.heartbeat import Heartbeat, WorkerLoad
from sso.perm.stores.seed import seed_central_application
from sso.serve.http1.balance import WorkerSlot
from sso.serve.http1.server import serve
from sso.serve.operator_socket import serve_operator
from sso.serve.process_tuning import tune_process
from sso.serve.server_limits import ServerLimits
from sso.services import Services, open_services
from sso.telemetry.counters import DomainCounter
from sso.telemetry.metrics import (
    Metrics,
    RequestObserver,
    WorkerGauge,
    export_to_prometheus,
    prometheus_request_observer,
    prometheus_slow_statement_observer,
)
from sso.telemetry.request_figures import RequestFigures
from sso.web.security_headers import data_headers

if TYPE_CHECKING:
    from sso.telemetry.otel.export import OtelExport

RETRY_S = 0.2
LAST_CALLS_S = 0.5  # for calls of the database after the time of requests has ended
log = structlog.get_logger()


async def run_worker(
    settings: Settings,
    dsn: str,
    sockets: Sequence[socket.socket],
    ready: Callable[[], None],
    slot: WorkerSlot,
    operator: socket.socket | None = None,
) -> None:
    """Serves until SIGTERM. A background task that fails is restarted while the worker goes on serving.

    ``operator`` is the listening socket for commands.
    """
    health, stop = Health(), trio.Event()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with (
            _open_export(settings) as export,
            open_services(settings, dsn, export.telemetry if export else None) as services,
            trio.open_nursery() as background,
        ):
            background.start_soon(_stop_on_signal, signals, health, stop, services)
            with trio.CancelScope() as starting:
                background.start_soon(_cancel_on_stop, stop, starting)
                await _start_background_tasks(services, background, slot)
            if starting.cancelled_caught:
                background.cancel_scope.cancel()
                return
            metrics = await _start_metrics(services, background, export, slot)
            async with trio.open_nursery() as serving:
                if operator is not None:
                    api = OperatorApi(services.management, services.database.clock)
                    serving.start_soon(serve_operator, operator, api.serve, stop)
                served = trio.Event()
                serving.start_soon(_store_accepted, services, stop, served)
                await _serve(settings, build_app(services, health, metrics), sockets, stop, ready, slot)
                served.set()
            await services.bus.wait_until_sent()  # what commands, or requests beyond the limit, have published
            background.cancel_scope.cancel()


async def _store_accepted(services: Services, stop: trio.Event, served: trio.Event) -> None:
    """Stores what requests have left when all were served, at the latest when their time has ended."""
    await stop.wait()
    with trio.move_on_after(ServerLimits().drain_s):
        await served.wait()
    await services.reset_requests.wait_until_handled()
    await services.password_login.rate_limiter.failed_logins.write_before_exit()
    await services.bus.wait_until_sent()


@asynccontextmanager
async def _open_export(settings: Settings) -> AsyncIterator["OtelExport | None"]:
    """Yields None if OpenTelemetry is not enabled. Its packages are imported only if it is."""
    if settings.otlp_endpoint is None:
        yield None
        return
    from sso.telemetry.otel.export import ExportOptions, open_export

    options = ExportOptions(
        settings.otlp_endpoint,
        parse_header_list(settings.otlp_headers.get_secret_value()) if settings.otlp_headers else {},
        settings.otlp_sample_percent,
        settings.otlp_interval_s,
        settings.otlp_ca_file,
    )
    async with open_export(options) as export:
        yield export


async def _start_metrics(
    services: Services, background: trio.Nursery, export: "OtelExport | None", slot: WorkerSlot
) -> Metrics:
    figures = RequestFigures()
    observers: list[RequestObserver] = [figures.observe]
    await background.start(keep_running, "figures", FigureWriter(services.database, figures, _load(services)).run)
    mail_queue = MailQueueMonitor(services.database)
    gauges, counters = _gauges(services, mail_queue), DomainCounter.registered
    if services.settings.metrics_bind is not None:
        observers.append(prometheus_request_observer())
        services.database.observe_slow_statements(prometheus_slow_statement_observer())
        await background.start(keep_running, "metrics", export_to_prometheus, gauges, counters)
    if export:
        observers.append(export.request_observer())
        services.database.observe_slow_statements(export.slow_statement_observer())
        export.observe_gauges(gauges)
        export.observe_counters(counters)
    if slot.is_first and (export or services.settings.metrics_bind is not None):
        await background.start(keep_running, "mail queue", mail_queue.run)
    return Metrics(observers)


def _gauges(services: Services, mail_queue: MailQueueMonitor) -> list[WorkerGauge]:
    game, database, bus = services.game_login, services.database, services.bus
    return [
        WorkerGauge("held_polls", "Polls of game clients that wait for a login", lambda: len(game.held_polls)),
        WorkerGauge(
            "change_readers",
            "Requests of programs that wait for changes of permissions, users and keys",
            lambda: services.change_reader.waiting,
        ),
        WorkerGauge(
            "signal_polls", "Polls of clients that wait for signals about users", lambda: len(services.signals.polls)
        ),
        WorkerGauge("sockets", "Open WebSockets of game clients", lambda: len(game.socket_registry)),
        WorkerGauge(
            "database_circuit_open",
            "Workers that refuse calls because the database does not answer",
            lambda: int(database.is_circuit_open),
        ),
        WorkerGauge("database_pool_size", "Connections that may be used at a time", lambda: database.pool_size),
        WorkerGauge("database_pool_busy", "Connections that are in use", lambda: database.busy_connections),
        WorkerGauge("database_pool_waiting", "Calls that wait for a free connection", lambda: database.waiting_calls),
        WorkerGauge("mail_queue", "Mails that wait for their delivery", lambda: mail_queue.waiting),
        WorkerGauge("mail_queue_oldest_seconds", "Age of the oldest waiting mail", lambda: mail_queue.oldest_s),
        WorkerGauge("bus_connected", "Workers that are connected to the bus", lambda: int(bus.connected.is_set())),
        WorkerGauge("bus_messages_sent", "Messages to other workers since this one started", lambda: bus.sent),
        WorkerGauge("bus_messages_received", "Messages of other workers since this one started", lambda: bus.received),
        WorkerGauge("bus_topics_waiting", "Topics that wait until the bus is connected", lambda: bus.waiting),
        WorkerGauge("bus_topics_dropped", "Topics dropped because too many waited", lambda: bus.dropped),
    ]


async def _serve(
    settings: Settings,
    app: Any,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    slot: WorkerSlot,
) -> None:
    tune_process()
    limits = ServerLimits(per_address=settings.connections_per_address, exempt=settings.trusted_proxies)
    if settings.http == "hypercorn":
        restore_hypercorn()
        from sso.serve.hypercorn_server import serve_with_hypercorn  # not above: few installations use it

        await serve_with_hypercorn(app, sockets, stop, ready, limits)
    else:
        await serve(app, sockets, stop, ready, limits, data_headers(https=settings.https), slot)


async def _start_background_tasks(services: Services, background: trio.Nursery, slot: WorkerSlot) -> None:
    await _wait_for_database(services, slot)
    background.start_soon(_open_connections, services)
    await background.start(keep_running, "clock", clock_sync.run, services.database)
    await background.start(keep_running, "node heartbeat", _heartbeat(services).run)
    if slot.is_first:
        await background.start(keep_running, "key files", services.permissions.key_file_import.run)
    await background.start(keep_running, "bus", services.bus.run)
    await background.start(keep_running, "keys", services.keys.run, services.bus)  # before anything signs
    async with trio.open_nursery() as starting:  # many of them read from the database first
        for name, work, *arguments in _background_tasks(services):
            starting.start_soon(partial(background.start, keep_running, name, work, *arguments))


def _background_tasks(services: Services) -> list[tuple[Any, ...]]:
    """Returns the name, the function and the arguments of each task. They start in any order, once keys are loaded."""
    settings = services.settings
    kept_days = (settings.audit_days, settings.history_days, settings.changes_days, settings.client_registration_days)
    return [
        ("change sequencer", services.change_sequencer.run),
        ("identity providers", services.upstream.provider_list.run, services.bus),
        ("brand", services.live_brand.run, services.bus),
        ("recorded requests", services.oauth.recorder.run, services.bus),
        ("mail", services.mail_sender.run, services.bus),
        ("logout notifications", services.logout_sender.run, services.bus),
        ("webhooks", services.webhook_sender.run, services.bus),
        ("signals", services.signals.sender.run, services.bus),
        ("polls of signals", services.signals.polls.run),
        ("streams of signals", services.signals.upkeep.run),
        ("data requests", services.game_data.sender.run, services.bus),
        ("password resets", services.reset_requests.run),
        ("failed logins", services.password_login.rate_limiter.failed_logins.run),
        ("held polls", services.game_login.held_polls.run),
        ("claim leases", services.game_login.claim_leases.run),
        ("heartbeats", services.game_login.socket_registry.run),
        ("load delay", services.game_login.backpressure.run),
        ("cleanup", cleanup.run, services.database, *kept_days),
        ("erasure", services.erasure.run),
        ("ends of bans", services.ban_expiry.run),
        ("time windows", services.permissions.window_changes.run),
        ("guests", services.players.expiry.run),
        ("forwarding monitor", services.forwarding.run, services.database),
    ]


def _load(services: Services) -> dict[str, Callable[[], int]]:
    game = services.game_login
    return {"held_polls": lambda: len(game.held_polls), "sockets": lambda: len(game.socket_registry)}


def _heartbeat(services: Services) -> Heartbeat:
    load = WorkerLoad(**_load(services))
    return Heartbeat(services.database, services.keyring, services.settings, services.bus.worker, load)


async def _open_connections(services: Services) -> None:
    try:
        await services.database.open_connections()
    except* Exception as group:  # connections are opened again when they are needed
        log.warning("worker.connections_failed", reason=str(group.exceptions[0]))


async def _wait_for_database(services: Services, slot: WorkerSlot) -> None:
    """Waits until the database responds, and stores what every database must contain.

    A worker that starts while the database is down waits here, rather than failing again and again.
    """
    logged = False
    while True:
        try:
            await services.key_rotation.ensure_signing_keys(ALGORITHMS[0], sides=CHEAP_ALGORITHMS)
            await seed_central_application(services.database)
            await measure_clock(services.database)
            if slot.is_first:
                await _prepare_test_players(services)
        except DatabaseError as error:
            if not logged:
                log.warning("worker.start_delayed", reason=str(error))
            logged = True
            await trio.sleep(RETRY_S)
        else:
            return


async def _prepare_test_players(services: Services) -> None:
    if password := services.settings.test_player_password:
        await services.test_players.create(password.get_secret_value())
    else:
        await services.test_players.disable()


async def _cancel_on_stop(stop: trio.Event, starting: trio.CancelScope) -> None:
    """Ends a start that may wait for the database for any time."""
    await stop.wait()
    starting.cancel()


async def _stop_on_signal(signals: AsyncIterator[int], health: Health, stop: trio.Event, services: Services) -> None:
    async for number in signals:
        log.info("worker.drain_started", signal=signal.Signals(number).name, polls=len(services.game_login.held_polls))
        health.draining = True
        stop.set()
        # Cancellation does not end them: the supervisor would have to kill this worker.
        services.database.deadlines.end_calls_by(trio.current_time() + ServerLimits().drain_s + LAST_CALLS_S)
        services.game_login.drain()
        services.change_reader.drain()
        services.signals.polls.drain()
