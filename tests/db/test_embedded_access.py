"""Other accounts can neither connect to an embedded PostgreSQL that root has started, nor change its files."""

import os
import pwd
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sso.db.embedded import Embedded
from tests.faults import open_folder
from tests.kit.postgres import execute, fetch
from tests.kit.prepared_data import join_prepared, wait_until_ended

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts PostgreSQL under another account")
NOBODY = pwd.getpwnam("nobody")

# Prints what PostgreSQL answers to the user name of the service: R and 0 is "you are authenticated", E is an error.
CONNECT = """
    import socket, struct, sys
    parameters = b"user\\0sso\\0database\\0sso\\0\\0"
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1] + "/.s.PGSQL.5432")
        server.sendall(struct.pack("!ii", len(parameters) + 8, 196608) + parameters)
        print(server.recv(1000))
"""
APPEND = """
    import sys
    open(sys.argv[1], "a").close()
"""


def as_nobody(program: str, argument: Path) -> str:
    done = subprocess.run(
        ["/usr/bin/python3", "-c", textwrap.dedent(program), str(argument)],
        user=NOBODY.pw_uid,
        group=NOBODY.pw_gid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@contextmanager
def running(data_dir: Path) -> Iterator[Embedded]:
    used = join_prepared(data_dir)
    pid = used.pid()
    try:
        yield used
    finally:
        used.close()
        wait_until_ended(pid)


def test_process_of_nobody_can_neither_connect_nor_write() -> None:
    with open_folder() as folder, running(folder / "data") as used:
        assert "PermissionError" in as_nobody(CONNECT, used.socket_dir)
        assert "PermissionError" in as_nobody(APPEND, used.directory / "data/pg_hba.conf")
        # Even if it could reach the socket.
        used.socket_dir.chmod(0o711)
        (used.socket_dir / ".s.PGSQL.5432").chmod(0o777)
        assert "Peer authentication failed" in as_nobody(CONNECT, used.socket_dir)
        used.socket_dir.chmod(0o700)
        assert fetch(used.dsn(), "SELECT current_user::text") == "sso"


def test_database_of_an_earlier_version_changes_its_owner() -> None:
    """It belongs to nobody, and everybody who reaches the socket may connect."""
    with open_folder() as folder:
        with running(folder / "data") as used:
            execute(used.dsn(), "CREATE TABLE kept (id int)")
        data, outside = used.directory / "data", folder / "outside"
        outside.touch()
        (data / "pg_hba.conf").write_text("local all all trust\n")
        (data / "link").symlink_to(outside)
        for path in (data, *data.rglob("*"), used.socket_dir):
            os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
        with running(folder / "data") as used:
            assert fetch(used.dsn(), "SELECT count(*) FROM kept") == 0
            for path in (data, *data.rglob("*"), used.socket_dir):
                assert path.lstat().st_uid != NOBODY.pw_uid, path
            assert outside.stat().st_uid == 0
            assert "trust" not in (data / "pg_hba.conf").read_text()
