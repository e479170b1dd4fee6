"""The program `sso` in processes of their own, without the second that it takes to import it.

A process that has imported the program waits for orders of all processes of a test run; for each, it forks. The new
process gets the environment, the folder, the arguments and the open files of the order, becomes the leader of a
session, and runs the program as ``python -m sso`` does, or another script in Python. Tests about the start of the
interpreter itself use subprocess.
"""

import atexit
import fcntl
import functools
import gc
import importlib
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, cast

import orjson

import sso.cli
from tests.kit.constants import CONSTANTS, set_constants
from tests.kit.prepared_data import shared_folder, use_prepared_data
from tests.kit.rsa_keys import use_quick_signing_key
from tests.kit.shifted_clock import SHIFT, shift_clock

ROOT = Path(__file__).parents[2]
_MAX_ORDER = 150_000  # bytes
_READ_WHEN_PYTHON_STARTS = ("LD_", "PYTHON")
_ordering = threading.Lock()


def can_fork(environment: Mapping[str, str]) -> bool:
    """Returns False if a variable has another value here that is read when the interpreter starts."""
    names = {name for name in {*environment, *os.environ} if name.startswith(_READ_WHEN_PYTHON_STARTS)}
    return all(environment.get(name) == os.environ.get(name) for name in names)


class ForkedProcess:
    """A process of the program, with the methods of subprocess.Popen that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | IO[str] | None = None,
        script: str = "",
    ) -> None:
        """Runs the program, or a script in Python."""
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        order = orjson.dumps({"arguments": arguments, "environment": dict(env), "folder": str(cwd), "script": script})
        ended, ending = os.pipe()
        self._ended = os.fdopen(ended)
        with ExitStack() as stack:
            nothing = stack.enter_context(Path(os.devnull).open("r+b", buffering=0))
            exit_code = stack.enter_context(os.fdopen(ending, "wb"))
            files: list[IO[bytes] | IO[str]] = [stdin or nothing, stdout or nothing, stderr or nothing, exit_code]
            if stdout is None:
                reading, writing = os.pipe()
                self.stdout = os.fdopen(reading)
                files[1] = stack.enter_context(os.fdopen(writing, "wb"))
            self.pid = _order(order, [file.fileno() for file in files])

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"sso (process {self.pid})", timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended in the meantime
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and _is_readable(self._ended, timeout):
            self.returncode = int(self._ended.read())
            self._ended.close()
        return self.returncode

    def __del__(self) -> None:
        if not self._ended.closed:
            self._ended.close()


def run(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdin: str = "",
    timeout: float = 60,
    script: str = "",
) -> subprocess.CompletedProcess[str]:
    """Runs a command, or a script in Python, and returns what it wrote."""
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        text.write(stdin.encode())
        text.seek(0)
        process = ForkedProcess(arguments, env=env, cwd=cwd, stdin=text, stdout=out, stderr=err, script=script)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess([script or "sso", *arguments], code, _content(out), _content(err))


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _is_readable(file: IO[str], timeout: float | None) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def _order(order: bytes, files: Sequence[int]) -> int:
    """Returns the id of the new process."""
    with _ordering:
        socket.send_fds(_forking_process(), [order], files)
        return int(_forking_process().recv(100))


@functools.cache
def _forking_process() -> socket.socket:
    """Connects to the process that forks, which all processes of a test run share, and starts it if necessary."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    address = Path(shared_folder() or _own_folder(), "forking.socket")
    with _locked(address):
        try:
            connection.connect(str(address))
        except OSError:
            process = _start_forking_process(address)
            connection.connect(str(address))
            atexit.register(process.wait)
    atexit.register(connection.close)  # first
    return connection


def _own_folder() -> str:
    folder = tempfile.mkdtemp(prefix="sso-forking-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _start_forking_process(address: Path) -> subprocess.Popen[bytes]:
    """It ends when no process holds a connection to it."""
    address.unlink(missing_ok=True)  # of one that has ended
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()
        return subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import take_orders; take_orders({listener.fileno()})"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )


@contextmanager
def _locked(address: Path) -> Iterator[None]:
    with address.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# In the process that forks


class _Running(NamedTuple):
    pid: int
    ending: int  # the pipe for its exit code
    connection: int  # of the process that ordered it


def take_orders(fd: int) -> NoReturn:
    _import_program()
    listener = socket.socket(fileno=fd)
    started = 0
    connections: dict[int, socket.socket] = {}
    running: dict[int, _Running] = {}  # by the descriptor of a process
    while True:
        ready, _, _ = select.select([fd, *connections, *running], [], [])
        ended = [process for process in ready if process in running]
        orders = [connection for connection in ready if connection in connections]
        for process in ended:
            _report_end(process, running.pop(process))
        for connection in orders:
            order, files, _, _ = socket.recv_fds(connections[connection], _MAX_ORDER, 4)
            if not order:  # the tests of this process have ended, perhaps killed
                connections.pop(connection).close()
                _stop(running, connection)
                if not connections:
                    _exit_unless_called(listener)
                continue
            pid = os.fork()
            if pid == 0:
                _run_program(orjson.loads(order), files, started)
            started += 1
            connections[connection].send(str(pid).encode())
            running[os.pidfd_open(pid)] = _Running(pid, files[3], connection)
            for file in files[:3]:
                os.close(file)
        if fd in ready:
            accepted, _ = listener.accept()
            connections[accepted.fileno()] = accepted


def _stop(running: dict[int, _Running], connection: int) -> None:
    for process in running.values():
        if process.connection == connection:
            os.kill(process.pid, signal.SIGTERM)


def _exit_unless_called(listener: socket.socket) -> None:
    """Ends this process, unless another one has just connected, which it does under the lock."""
    try:
        with _locked(Path(listener.getsockname())):
            if not select.select([listener], [], [], 0)[0]:
                os._exit(0)
    except OSError:  # the folder has been removed
        os._exit(0)


def _import_program() -> None:
    gc.disable()
    commands = [module.name for module in pkgutil.walk_packages(sso.cli.__path__, "sso.cli.")]
    for name in ("sso.worker", "sso.client", "alembic.command", "sso.db.tables", "webauthn", *commands):
        importlib.import_module(name)
    _build_app()
    _read_data_of_pages()
    assert "prometheus_client" not in sys.modules  # it reads the environment when it is imported
    assert threading.active_count() == 1  # a fork has no other threads
    gc.freeze()


def _build_app() -> None:
    """Builds the application once, which compiles its templates, statements, routes and records for all processes."""
    from sso.app import build_app
    from sso.config import Settings
    from sso.core.encryption import Keyring, MasterKey
    from sso.db.database import Database
    from sso.health import Health
    from sso.openapi.document import build_document
    from sso.services import build
    from sso.telemetry.metrics import Metrics

    with tempfile.TemporaryDirectory() as folder:
        services = build(
            Settings(data_dir=Path(folder)), Database("", cast(Any, None), 1), Keyring([MasterKey.generate()])
        )
        templates = build_app(services, Health(), Metrics()).jinja_env
        build_document("", services.management.routes)
    for name in templates.list_templates():
        templates.get_template(name)


def _read_data_of_pages() -> None:
    """Reads what a worker reads for its first pages with dates and countries, and for its first new password."""
    from sso.accounts.history.texts import format_time
    from sso.accounts.password_rules import check_new_password
    from sso.accounts.profile.choices import countries

    format_time(datetime.now(UTC))
    countries("en")
    check_new_password("violet tractor sings quietly")


def _report_end(descriptor: int, process: _Running) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
    with suppress(BrokenPipeError):  # the process that ordered it has ended
        os.write(process.ending, str(code).encode())
    os.close(process.ending)
    os.close(descriptor)


def _run_program(order: dict[str, Any], files: Sequence[int], number: int) -> NoReturn:
    """Becomes the program, or runs a script in its place."""
    from sso.cli import main

    os.setsid()
    for descriptor, file in enumerate(files[:3]):
        os.dup2(file, descriptor)
    if os.isatty(1):
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)  # passwords are read from the controlling terminal
    os.closerange(3, 10_000)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = [order["script"] or str(ROOT / "sso/__main__.py"), *order["arguments"]]
    sys.path[0] = order["folder"]
    if not order["script"] and order["arguments"][:1] == ["serve"]:  # other commands may want an empty database
        use_prepared_data()
        use_quick_signing_key(number)
    set_constants(os.environ.pop(CONSTANTS, "{}"))
    if shift := os.environ.pop(SHIFT, ""):
        shift_clock(float(shift))
    try:
        if order["script"]:
            runpy.run_path(order["script"], run_name="__main__")
            _exit(0)
        main()
    except SystemExit as error:
        _exit(error.code)
    raise AssertionError("the program returned")


def _exit(code: int | str | None) -> NoReturn:
    """Ends like the interpreter, but does not free the memory, which would take longer than most commands."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
