"""sso serve"""

import dataclasses
import gc
import importlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from socket import socket

import click
import structlog
import trio
from msgspec import structs

import sso
from sso.accounts.registration.challenge import check_challenge_setting
from sso.accounts.test_players.setting import check_test_player_setting
from sso.cli.child_work import run_in_child
from sso.cli.context import migrated_database, settings_of
from sso.cli.data_directory import is_missing
from sso.cli.echo import echo
from sso.cli.first_administrator import creation_command, has_users, how_to_create
from sso.config import ConfigError, Settings, load
from sso.core.bind_address import Bind, parse_binds, public_bind
from sso.core.encryption import EncryptionError
from sso.db.embedded import Embedded, EmbeddedError, join, set_wal_archive, wait_until_stopped
from sso.keys.shared_settings import require_shared_settings
from sso.log import configure_logging, writes_json
from sso.nodes.heartbeat import default_node_name
from sso.serve import metrics_server
from sso.serve.child_process import ChildRole, ReadyPipe
from sso.serve.handover import offer_listeners, stop_service
from sso.serve.http1.balance import WorkerSlots
from sso.serve.operator_socket import operator_listener
from sso.serve.privileges import drop_privileges
from sso.serve.process_tuning import enable_garbage_collector
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.service_listeners import ServiceListeners, open_listeners
from sso.serve.start_settings import changed_start_settings, keep_start_settings
from sso.serve.supervisor import Supervisor
from sso.telemetry import metrics

DATABASE_CHECK_SECONDS = 0.3
DATABASE_STOP_SECONDS = 5.0
DATABASE_LOG_SECONDS = 60.0  # between two lines about a database that cannot be started
log = structlog.get_logger()


@click.command()
@click.option(
    "--apply",
    "document",
    type=click.Path(path_type=Path),
    help="First apply this document of desired state, like `sso apply`.",
)
@click.option("--replace", is_flag=True, help="Take over from the running service; see above.")
@click.pass_context
def command(ctx: click.Context, document: Path | None, replace: bool) -> int:
    """Start the service and keep it running.

    \b
    SIGTERM, Ctrl-C   stop accepting requests, finish those in progress, exit with code 0
    SIGHUP            read the settings again and replace the workers one by one

    With --replace, the service takes copies of the listening sockets of the service that runs with the same data
    directory. When the new one is ready, the old one finishes its requests and ends: no request is lost. If the new
    one does not start, the old one goes on.

    \b
    Example:
      SSO_BIND=0.0.0.0:8000 SSO_BASE_URL=https://sso.example.com sso serve
      sso serve --replace
    """
    settings = loaded = settings_of(ctx, may_create=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop_while_starting)  # until the supervisor runs
    _check_settings(settings)
    if settings.http == "lane":
        log.warning("config.value_deprecated", setting="SSO_HTTP", value="lane", use="builtin")
    with ExitStack() as stack:
        try:
            binds = parse_binds(settings.bind)
        except ValueError as error:
            raise ConfigError(f"SSO_BIND: {error}") from None
        listeners = stack.enter_context(open_listeners(settings, binds, replace=replace))
        first = public_bind(binds)
        bound = first.bound(listeners.requests[binds.index(first)])
        settings = _with_real_port(settings, bound)
        settings = dataclasses.replace(settings, node_name=settings.node_name or default_node_name(bound))
        drop_privileges(settings.user, settings.data_dir, binds)
        log.info("data_directory.opened", path=str(settings.data_dir.resolve()), new=is_missing(settings))
        if listeners.metrics:
            stack.callback(shutil.rmtree, metrics.prepare_multiprocess_directory(), ignore_errors=True)
        if settings.database_url is None and set_wal_archive(settings.data_dir, settings.wal_archive):
            log.warning("embedded_postgres.archiving_disabled", reason="SSO_WAL_ARCHIVE is no longer set")
        if settings.database_url is None:
            stack.callback(wait_until_stopped, settings.data_dir, DATABASE_STOP_SECONDS)
        prepare = partial(_prepare_workers, with_apply=document is not None)
        dsn = stack.enter_context(migrated_database(settings, prepare, wait=True, in_child=True))
        gc.freeze()  # workers share the pages of what was made since the imports, too
        if document is not None:
            _apply_first(ctx, document)
        # Not earlier: from now on commands on this data directory wait for the workers.
        operator = stack.enter_context(operator_listener(settings.data_dir))
        listeners = structs.replace(listeners, operator=operator)
        return _supervise(settings, loaded, ctx.find_root().obj, dsn, listeners)


def _stop_while_starting(*_: object) -> None:
    raise SystemExit(0)


def _apply_first(ctx: click.Context, document: Path) -> None:
    """Applies the document in a child process: hashing starts threads, and a process with threads must not fork."""
    from sso.cli import apply

    run_in_child(partial(ctx.invoke, apply.command, file=document))


def _check_settings(settings: Settings) -> None:
    """Raises ConfigError for what only `sso serve` needs. Imports packages before the fork, if settings name them."""
    require_shared_settings(settings)
    _require_telemetry_packages(settings)
    check_challenge_setting(settings)
    check_test_player_setting(settings)


def _require_telemetry_packages(settings: Settings) -> None:
    """Imports the packages of OpenTelemetry before the fork, if they are needed."""
    if settings.otlp_endpoint:
        try:
            importlib.import_module("sso.telemetry.otel.export")
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"SSO_OTLP_ENDPOINT: the package {error.name} is not installed; "
                f"it belongs to the extra otel: pip install 'sso-{sso.__version__}-py3-none-any.whl[otel]'"
            ) from None


def _prepare_workers(*, with_apply: bool) -> None:
    """Imports modules and compiles templates before the fork, so that workers start quickly and share the memory."""
    from sso.app import compile_templates

    importlib.import_module("sso.worker")
    if with_apply:
        importlib.import_module("sso.cli.apply")
    compile_templates()
    gc.freeze()


def _supervise(
    settings: Settings, loaded: Settings, config_file: Path | None, dsn: str, listeners: ServiceListeners
) -> int:
    """``loaded``: the settings before addresses and the name of the node were completed."""
    from sso.keys.master_key import open_keyring
    from sso.keys.missing_key import MasterKeyMissing, is_master_key_missing
    from sso.worker import run_worker

    slots = WorkerSlots()
    if is_master_key_missing(settings, dsn):
        raise MasterKeyMissing(settings)
    open_keyring(settings)  # creates the master key if there is none; an invalid one is reported before anything starts

    def workers(current: Settings) -> ChildRole:
        def run(ready: ReadyPipe, number: int) -> None:
            configure_logging(current.log_format, current.log_level)  # SIGHUP may have changed them
            _exit_on_sigterm()  # while the worker starts and after it has stopped: the exit code stays 0
            for listener in listeners.metrics:
                listener.close()
            slot = slots.slot(number, current.workers)
            try:
                trio.run(partial(run_worker, current, dsn, listeners.requests, ready, slot, listeners.operator))
            except ExceptionGroup as group:
                if wrong_key := group.subgroup(EncryptionError):
                    raise SystemExit(str(_innermost(wrong_key))) from None
                raise

        return ChildRole("worker", run, current.workers)

    def stop_listening() -> None:
        listeners.close_requests()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second SIGTERM must not change the exit code

    def helper_role(name: str, work: Callable[[ReadyPipe], None]) -> ChildRole:
        """Returns the role of a process that serves no requests: it closes the listeners, which only workers keep."""

        def run(ready: ReadyPipe, _: int) -> None:
            listeners.close_requests()
            work(ready)

        return ChildRole(name, run)

    def roles(current: Settings) -> list[ChildRole]:
        watched = [] if current.database_url else [helper_role("database", partial(_keep_database, current.data_dir))]
        measured = [helper_role("metrics", partial(_serve_metrics, listeners.metrics))] if listeners.metrics else []
        # Last, so that it stops first: it keeps the listening sockets open.
        return [*watched, *measured, workers(current), ChildRole("handover", _offer_listeners(listeners))]

    without_users = not has_users(dsn)

    def announce() -> None:
        workers = f"{settings.workers} worker{'s'[: settings.workers > 1]}"
        echo(f"sso is ready at {settings.base_url} ({workers}, data directory {settings.data_dir.resolve()})")
        for service in listeners.predecessors:
            if stop_service(service):
                echo(f"The old service (process {service.pid}) finishes its requests and ends.")
            else:
                echo(f"The old service (process {service.pid}) is still running. Stop it: kill {service.pid}")
        if without_users:
            _explain_first_administrator(settings, config_file)

    def reload() -> list[ChildRole]:
        current = load(config_file)
        if changed := changed_start_settings(loaded, current):
            log.warning("reload.restart_needed", settings=changed)
        current = keep_start_settings(current, running=settings)
        _check_settings(current)
        return roles(current)

    enable_garbage_collector()  # in all processes of the service: they run for long
    return Supervisor(roles(settings), on_ready=announce, on_stop=stop_listening, reload=reload).run()


def _innermost(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns the error inside the groups that the nurseries wrapped around it."""
    error = group.exceptions[0]
    return _innermost(error) if isinstance(error, BaseExceptionGroup) else error


def _with_real_port(settings: Settings, bind: Bind) -> Settings:
    """If the bind address has port 0, the public addresses get the port that the system assigned."""
    if not settings.base_url.endswith(":0"):
        return settings
    url = bind.local_url()
    return dataclasses.replace(settings, base_url=url, ws_url=f"ws{url.removeprefix('http')}")


def _explain_first_administrator(settings: Settings, config_file: Path | None) -> None:
    command = creation_command(settings, config_file)
    if writes_json(settings.log_format):
        log.warning("administrator.needed", command=command)
    echo(how_to_create(settings, command))


def _keep_database(data_dir: Path, ready: ReadyPipe) -> None:
    """Starts the embedded PostgreSQL again whenever it stops."""
    _exit_on_sigterm()
    embedded = join(data_dir)
    ready()
    while True:
        time.sleep(DATABASE_CHECK_SECONDS)
        if not embedded.is_alive():
            _restart(embedded)


def _restart(embedded: Embedded) -> None:
    """Starts PostgreSQL, which may fail for hours: the disk may be full."""
    log.error("embedded_postgres.stopped")
    limited_log = RateLimitedLog(DATABASE_LOG_SECONDS)
    while True:
        try:
            embedded.ensure()
        except EmbeddedError as error:
            limited_log(log.error, "embedded_postgres.start_failed", reason=str(error))
            time.sleep(DATABASE_CHECK_SECONDS)
        else:
            break
    log.info("embedded_postgres.restarted")


def _serve_metrics(sockets: Sequence[socket], ready: ReadyPipe) -> None:
    _exit_on_sigterm()
    metrics_server.serve_metrics(sockets, ready)


def _offer_listeners(listeners: ServiceListeners) -> Callable[[ReadyPipe, int], None]:
    def run(ready: ReadyPipe, _: int) -> None:
        _exit_on_sigterm()
        offer_listeners(listeners.handover_path, listeners.by_bind, listeners.handed_over, ready)

    return run


def _exit_on_sigterm() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
