"""SSO_USER: a service started by root listens, and then runs under another account, with its embedded PostgreSQL."""

import os
import pwd
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sso
from sso.config import ConfigError
from sso.core.bind_address import Bind
from sso.db.embedded.files import Account, reachable
from sso.serve import privileges
from sso.serve.privileges import drop_privileges
from tests.kit.server import QUICK, clean_environment, until

NAME = "nobody"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch accounts")


def entry() -> pwd.struct_passwd:
    return pwd.getpwnam(NAME)


def interpreter() -> str:
    """Returns a Python of the same version that the account can run: that of the tests may be in the home of root."""
    account = Account(entry().pw_uid, entry().pw_gid)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin:/bin")):
        if candidate and reachable(Path(candidate), account):
            return candidate
    pytest.skip("no Python that the account can run")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the account can enter; those of pytest are closed to other accounts."""
    path = Path(tempfile.mkdtemp(prefix="sso-account-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def environment(folder: Path, **settings: str) -> dict[str, str]:
    packages = [str(Path(sso.__file__).parents[1]), *(part for part in sys.path if part.endswith("site-packages"))]
    base = QUICK | {"SSO_BIND": "127.0.0.1:0", "SSO_DATA_DIR": str(folder / "new" / "data"), "SSO_USER": NAME}
    return clean_environment(**(base | settings)) | {"PYTHONPATH": ":".join(packages)}


def start(folder: Path, **settings: str) -> "subprocess.Popen[str]":
    command = [interpreter(), "-m", "sso", "serve"]
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            command, env=environment(folder, **settings), cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )


def owners(pid: int) -> Iterator[tuple[set[int], set[int]]]:
    """Yields the user and group ids (real, effective, saved, file system) of a process and its descendants."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # a backend of PostgreSQL that has ended
        return
    uids, gids = (re.findall(rf"^{kind}:(.*)$", status, re.M)[0].split() for kind in ("Uid", "Gid"))
    yield set(map(int, uids)), set(map(int, gids))
    for child in children:
        yield from owners(int(child))


@as_root
def test_service_started_by_root_runs_under_the_account_with_embedded_postgresql(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics = f"127.0.0.1:{free.getsockname()[1]}"
    binds = f"127.0.0.1:0,unix:{folder}/sso.sock"
    process = start(folder, SSO_BIND=binds, SSO_WORKERS="2", SSO_METRICS_BIND=metrics)
    try:
        assert process.stdout is not None
        ready = re.search(r"ready at (\S+)", process.stdout.readline())
        assert ready, (folder / "log").read_text()
        # The migration has imported SQLAlchemy in a process that has ended.
        assert "sqlalchemy" not in Path(f"/proc/{process.pid}/maps").read_text()
        processes = list(owners(process.pid))
        assert len(processes) >= 5  # supervisor, two workers, metrics, the watcher of the database
        assert all(ids == ({entry().pw_uid}, {entry().pw_gid}) for ids in processes)
        assert httpx.get(f"{ready[1]}/readyz", timeout=60).status_code == 200
        assert "sso_request_seconds" in httpx.get(f"http://{metrics}/metrics", timeout=60).text
        for path in (folder / "new/data", folder / "new/data/secret.key", folder / "new/data/postgres/data"):
            assert path.stat().st_uid == entry().pw_uid
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        assert (folder / "sso.sock").stat().st_gid == entry().pw_gid
        postgres = int((folder / "new/data/postgres/data/postmaster.pid").read_text().splitlines()[0])
        assert next(owners(postgres))[0] == {entry().pw_uid}
        command = [interpreter(), "-m", "sso", "doctor", "--verbose"]  # another command that root starts meanwhile
        done = subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True, check=False)
        assert f"account: this command runs as uid {entry().pw_uid}" in done.stdout, done.stderr
    finally:
        process.terminate()
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()
        assert until(lambda: not (folder / "new/data/postgres/data/postmaster.pid").exists(), 60)


@as_root
def test_data_directory_of_root_is_refused_with_the_chown_command(folder: Path) -> None:
    (folder / "data").mkdir()
    process = start(folder, SSO_DATA_DIR=str(folder / "data"))
    assert process.wait(60) != 0
    assert process.stdout is not None
    process.stdout.close()
    assert f"chown -R {NAME}: {folder / 'data'}" in (folder / "log").read_text()


def test_another_account_is_refused_without_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ConfigError, match="SSO_USER: only root can switch"):
        drop_privileges(NAME, tmp_path)


def test_current_account_is_not_switched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: entry().pw_uid)
    monkeypatch.setattr(os, "setresuid", lambda *_: pytest.fail("switched"))
    drop_privileges(NAME, tmp_path)
    drop_privileges(None, tmp_path)


@as_root
def test_program_that_the_account_cannot_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(0o700)
    (hidden / "python").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(hidden / "python"))
    with pytest.raises(ConfigError, match="cannot read the program at"):
        drop_privileges(NAME, tmp_path)


@as_root
def test_link_in_place_of_a_socket_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account may own the folder of the socket, and must not get other files that way."""
    (folder / "private").touch(0o600)
    (folder / "sso.sock").symlink_to(folder / "private")
    (folder / "data").mkdir()
    os.chown(folder / "data", entry().pw_uid, entry().pw_gid)
    monkeypatch.setattr(privileges, "_check_program_readable", lambda _: None)
    monkeypatch.setattr(privileges, "_switch_user", lambda _: None)
    drop_privileges(NAME, folder / "data", (Bind(path=str(folder / "sso.sock")),))
    assert (folder / "private").stat().st_uid == 0
