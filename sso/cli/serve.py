"""sso serve"""

import gc
import importlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from socket import socket

import click
import structlog
import trio

from sso import metrics
from sso.cli.context import FAILURES, database, settings_of
from sso.config import ConfigError, Settings, load
from sso.core.bind_address import Bind, parse_binds
from sso.core.encryption import SealError
from sso.db.embedded import Embedded, EmbeddedError, join
from sso.serve import metrics_server
from sso.serve.child_process import ChildRole, ReadyPipe
from sso.serve.http1.balance import WorkerSlots
from sso.serve.listeners import listening
from sso.serve.privileges import drop_privileges
from sso.serve.supervisor import Supervisor

LOOK_EVERY_S = 0.3
log = structlog.get_logger()


@click.command()
@click.option(
    "--apply",
    "document",
    type=click.Path(path_type=Path),
    help="Load this document of desired state first, as `sso apply` does.",
)
@click.pass_context
def command(ctx: click.Context, document: Path | None) -> int:
    """Start the service and keep it running.

    \b
    SIGTERM, Ctrl-C   stop taking requests, finish those in flight, exit 0
    SIGHUP            read the settings again and replace the workers one by one
    """
    settings = settings_of(ctx)
    if settings.http == "lane":
        log.warning("config.value_deprecated", setting="SSO_HTTP", value="lane", use="builtin")
    with ExitStack() as stack:
        try:
            binds = parse_binds(settings.bind)
        except ValueError as error:
            raise ConfigError(f"SSO_BIND: {error}") from None
        sockets = stack.enter_context(listening(binds))
        settings = _with_real_port(settings, binds[0].bound(sockets[0]))
        meters = stack.enter_context(listening(parse_binds(settings.metrics_bind))) if settings.metrics_bind else ()
        drop_privileges(settings.user, settings.data_dir, binds)
        if meters:
            stack.callback(shutil.rmtree, metrics.prepare_multiprocess_directory(), ignore_errors=True)
        dsn = stack.enter_context(database(settings, meanwhile=_import_worker))
        if document is not None:
            _apply_first(ctx, document)
        return _supervise(settings, ctx.find_root().obj, dsn, sockets, meters)


def _apply_first(ctx: click.Context, document: Path) -> None:
    """In a process of its own: hashing takes threads, and from a process with threads no worker may be forked."""
    from sso.cli import apply, fail

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ctx.invoke(apply.command, file=document)
            code = 0
        except FAILURES as error:
            fail(str(error))
        finally:
            sys.stdout.flush()
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise SystemExit(1)


def _import_worker() -> None:
    """Once, before the workers are forked: each is then there in no time and shares the memory of what it imports."""
    importlib.import_module("sso.worker")
    importlib.import_module("sso.cli.apply")
    gc.freeze()


def _supervise(
    settings: Settings, config_file: Path | None, dsn: str, sockets: Sequence[socket], meters: Sequence[socket]
) -> int:
    from sso.services import keyring
    from sso.worker import run_worker

    places = WorkerSlots()
    keyring(settings)  # made now if there is none, and a bad one is said before anything starts

    def workers(current: Settings) -> ChildRole:
        def run(ready: ReadyPipe, number: int) -> None:
            gc.enable()
            _leave_on_sigterm()  # before it serves, and after: a further signal must not change its exit code
            for listener in meters:
                listener.close()
            place = places.place(number, current.workers)
            try:
                trio.run(partial(run_worker, current, dsn, sockets, ready, place))
            except* SealError as group:
                raise SystemExit(str(_first(group))) from None

        return ChildRole("worker", run, current.workers)

    def close_sockets() -> None:
        for listener in sockets:
            listener.close()

    def stop_listening() -> None:
        close_sockets()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a further one must not change the exit code

    def aside(name: str, work: Callable[[ReadyPipe], None]) -> ChildRole:
        """It answers no requests, so it must not hold the listeners open when those who do have closed them."""

        def run(ready: ReadyPipe, _: int) -> None:
            close_sockets()
            work(ready)

        return ChildRole(name, run)

    def roles(current: Settings) -> list[ChildRole]:
        minder = [] if current.database_url else [aside("database", partial(_mind_database, current.data_dir))]
        meter = [aside("metrics", partial(_serve_metrics, meters))] if meters else []
        return [*minder, *meter, workers(current)]

    def announce() -> None:
        click.echo(f"sso is ready at {settings.base_url} ({settings.workers} worker{'s'[: settings.workers > 1]})")

    def reload() -> list[ChildRole]:
        return roles(load(config_file).model_copy(update={"base_url": settings.base_url, "ws_url": settings.ws_url}))

    return Supervisor(roles(settings), on_ready=announce, on_stop=stop_listening, reload=reload).run()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """An error itself, from under the nurseries that it passed through."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _with_real_port(settings: Settings, bind: Bind) -> Settings:
    """With port 0 the public address follows the port that was given."""
    if not settings.base_url.endswith(":0"):
        return settings
    address = bind.url_host()
    return settings.model_copy(update={"base_url": f"http://{address}", "ws_url": f"ws://{address}"})


def _mind_database(data_dir: Path, ready: ReadyPipe) -> None:
    """Start the embedded PostgreSQL again whenever it dies."""
    _leave_on_sigterm()
    embedded = join(data_dir)
    ready()
    while True:
        time.sleep(LOOK_EVERY_S)
        if not embedded.is_alive():
            _revive(embedded)


def _revive(embedded: Embedded) -> None:
    log.error("embedded_postgres.stopped")
    try:
        embedded.ensure()
    except EmbeddedError as error:
        log.error("embedded_postgres.start_failed", reason=str(error))
    else:
        log.info("embedded_postgres.restarted")


def _serve_metrics(sockets: Sequence[socket], ready: ReadyPipe) -> None:
    _leave_on_sigterm()
    metrics_server.serve(sockets, ready)


def _leave_on_sigterm() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
