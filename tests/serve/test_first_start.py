"""The first start of a service: it names its data directory, and how to create the first administrator."""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults import open_folder
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, until

HINT = re.compile(r"There are no users yet\. .*:\n    (.+)\n")


def output_of(server: Server) -> str:
    """Stops the server and returns what it has printed after the line that says that it is ready."""
    assert server.process is not None
    assert server.process.stdout is not None
    server.process.terminate()
    output = server.process.stdout.read()
    assert server.stop() == 0
    return output


@contextmanager
def paused(postmaster: int, server: Server) -> Iterator[None]:
    """The database cannot stop until some time after the workers have."""

    def resume() -> None:
        until(lambda: not server.workers())
        time.sleep(0.5)
        os.kill(postmaster, signal.SIGCONT)

    os.kill(postmaster, signal.SIGSTOP)
    resuming = threading.Thread(target=resume)
    resuming.start()
    try:
        yield
    finally:
        resuming.join()


def test_printed_command_creates_the_first_administrator_and_is_not_printed_again() -> None:
    with open_folder() as folder:
        server = Server(folder, QUICK)
        del server.settings["SSO_DATA_DIR"]  # the default is relative to the working directory
        server.start()
        data = folder.resolve() / "var"
        assert server.process is not None
        assert server.process.stdout is not None
        text = server.process.stdout.readline() + server.process.stdout.readline()
        hint = HINT.fullmatch(text)
        assert hint, text
        (opened,) = server.log_events("data_directory.opened")
        assert (opened["path"], opened["new"]) == (str(data), True)
        (event,) = server.log_events("administrator.needed")
        assert event["command"] == hint[1]

        other_terminal = {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            hint[1], shell=True, env=other_terminal, cwd="/", capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "user_id 1000" in done.stdout
        assert output_of(server) == ""

        server.start()
        postmaster = data / "postgres/data/postmaster.pid"
        with paused(int(postmaster.read_text().split()[0]), server):
            assert output_of(server) == ""
            assert not postmaster.exists(), "systemd and the end of a container kill a database that still runs"
        assert [event["new"] for event in server.log_events("data_directory.opened")] == [True, False]
        assert len(server.log_events("administrator.needed")) == 1


def test_hint_does_not_contain_the_database_url(postgres_server: Postgres, tmp_path: Path) -> None:
    dsn = postgres_server.fresh()
    server = Server(tmp_path, QUICK | {"SSO_DATABASE_URL": dsn})
    server.start()
    text = output_of(server)
    assert "with the same SSO_* settings" in text
    assert dsn not in text
    postgres_server.drop(dsn)
