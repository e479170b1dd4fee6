"""Several processes that run the tests of a session: ``pytest --processes 4``.

The tests are imported and collected once. Then the session forks, and each process takes the next file whenever it has
finished one, so all tests of a file run in the same process. Files that share what is slow to start, such as a browser,
are a group, which one process takes first; the others take of it when they have nothing else to do. Reports go to the
first process, which shows them.
"""

import atexit
import itertools
import mmap
import os
import random
import signal
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest
from _pytest.config import create_terminal_writer

from tests.kit.file_order import GROUP_COUNT, group_numbers

_NUMBER = struct.Struct("H")


class _Test(NamedTuple):
    node_id: str
    location: Any
    next_file: list[int]  # has the number of the file that follows, if this is the last test of its file


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, metavar="N", help="run the tests in this many processes")


class ProcessRunner:
    """A plugin of the first process. It replaces the loop over all tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return None  # the usual loop handles these
        session.config.pluginmanager.getplugin("terminalreporter").showfspath = False  # files would alternate
        run = _Run(session)
        try:
            run.follow()
        finally:
            run.end()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True


class _Run:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._files = [list(items) for _, items in itertools.groupby(session.items, lambda item: item.path)]
        groups = group_numbers([items[0] for items in self._files])
        self._queues = [_queue([n for n, group in enumerate(groups) if group == g]) for g in range(GROUP_COUNT)]
        self._stop = mmap.mmap(-1, 1)  # shared memory: a true value ends the processes after their current test
        self._pids: dict[Connection, int] = {}
        self._numbers: dict[Connection, int] = {}  # of the processes
        self._tests: dict[Connection, _Test] = {}  # that run now
        self._base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for number in range(min(session.config.option.processes, len(self._files))):
            self._fork([], number)

    def follow(self) -> None:
        """Reports the results of the processes until all have ended."""
        while self._pids:
            for connection in wait(list(self._pids)):
                assert isinstance(connection, Connection)
                try:
                    self._receive(connection, connection.recv())
                except EOFError:
                    self._finish(connection)
            self._stop[0] = bool(self._session.shouldfail or self._session.shouldstop)

    def end(self) -> None:
        """Ends processes that still run because this one was interrupted."""
        for connection, pid in self._pids.items():
            connection.close()
            os.kill(pid, signal.SIGINT)
        for pid in self._pids.values():  # the one that started the forking process ends last
            os.waitpid(pid, 0)
        for queue in self._queues:
            os.close(queue)

    def _fork(self, files: list[int], number: int) -> None:
        """Starts a process, which runs these files first, then its group if it has one, and then the other files."""
        *groups, ungrouped = self._queues
        queues = [*groups[number : number + 1], ungrouped, *groups[number + 1 :], *groups[:number]]
        receiving, sending = Pipe(duplex=False)
        pid = os.fork()
        if pid == 0:
            for connection in (receiving, *self._pids):
                connection.close()
            worker = _Worker(self._session, self._files, queues, self._stop, sending)
            worker.run(files, self._base / f"process{os.getpid()}")
        sending.close()
        self._pids[receiving] = pid
        self._numbers[receiving] = number

    def _receive(self, connection: Connection, message: Any) -> None:
        hook = self._session.config.hook
        kind, test, reports = message
        if kind == "started":
            self._tests[connection] = test
            return
        self._tests.pop(connection, None)
        hook.pytest_runtest_logstart(nodeid=test.node_id, location=test.location)
        for data in reports:
            report = hook.pytest_report_from_serializable(config=self._session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=test.node_id, location=test.location)

    def _finish(self, connection: Connection) -> None:
        """Reports a crash, unless the process has ended well. Another one continues with the next file."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pids.pop(connection), 0)[1])
        connection.close()
        number = self._numbers.pop(connection)
        if code:
            test = self._tests.pop(connection, None)
            node_id, location = (test.node_id, test.location) if test else ("(no test)", ("", None, ""))
            problem = f"the process ended with the code {code}: the remaining tests of the file did not run"
            report = pytest.TestReport(node_id, location, {}, "failed", problem, "call")
            self._session.config.hook.pytest_runtest_logreport(report=report)
            if test:
                self._fork(test.next_file, number)


def _queue(files: Sequence[int]) -> int:
    """Returns a pipe. Each process reads the number of the next file; the kernel gives each number to one of them."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(map(_NUMBER.pack, files)))
    os.close(writing)
    return reading


class _Worker:
    """A process that runs tests. As a plugin, it receives their reports."""

    def __init__(
        self,
        session: pytest.Session,
        files: Sequence[Sequence[pytest.Item]],
        queues: Sequence[int],
        stop: mmap.mmap,
        to: Connection,
    ) -> None:
        self._session = session
        self._files = files
        self._queues = queues
        self._stop = stop
        self._to = to
        self._reports: list[Any] = []

    def run(self, files: list[int], folder: Path) -> NoReturn:
        code = 1
        try:
            self._separate_from_the_first_process(folder)
            self._run_tests(files)
            code = 0
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                traceback.print_exc(file=sys.__stderr__)
        finally:
            with suppress(BaseException):
                self._session._setupstate.teardown_exact(None)  # fixtures, unless the last test has done it
            atexit._run_exitfuncs()
            os._exit(code)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self._session.config
        self._reports.append(config.hook.pytest_report_to_serializable(config=config, report=report))

    def _separate_from_the_first_process(self, folder: Path) -> None:
        atexit._clear()  # what is called at the end of the first process
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
        random.seed()
        config = self._session.config
        for name in ("terminalreporter", "terminalprogress-plugin"):
            if plugin := config.pluginmanager.getplugin(name):
                config.pluginmanager.unregister(plugin)
        config.pluginmanager.register(_Output(config), "terminalreporter")
        config.pluginmanager.register(self)
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()  # into files of its own
        capture.suspend_global_capture()
        folder.mkdir()
        config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]

    def _run_tests(self, files: list[int]) -> None:
        tests = self._take_files(files)
        file, item = next(tests, (0, None))
        while item and not self._stop[0]:
            next_file, next_item = next(tests, (file, None))
            test = _Test(item.nodeid, item.location, [next_file] if next_file != file else [])
            self._to.send(("started", test, []))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
            self._to.send(("finished", test, self._reports))
            self._reports = []
            file, item = next_file, next_item

    def _take_files(self, files: list[int]) -> Iterator[tuple[int, pytest.Item]]:
        for file in files:
            yield from ((file, item) for item in self._files[file])
        for queue in self._queues:
            while number := os.read(queue, _NUMBER.size):
                (file,) = _NUMBER.unpack(number)
                yield from ((file, item) for item in self._files[file])


class _Output:
    """Takes the place of the terminal: what plugins print during a test belongs to the output of the test."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = create_terminal_writer(config, sys.__stderr__)
