"""Imports users with five kinds of password hashes into a running service, and signs some of each kind in.

Each kind has the cost that its source has by default. A few hashes are made and shared by all users: making them is not
what is measured. CPU time and memory are those of the command; PostgreSQL is not in them.
"""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import argon2
import bcrypt
import orjson

from scripts.benchmarks.report import arguments, progress, show
from sso.core.password_hashes.pbkdf2_hash import passlib_text
from sso.core.password_hashes.scrypt_hash import firebase_text
from tests.kit.server import NO_LIMITS, Server, running

PASSWORD = "correct horse battery"
SIGN_INS = 5  # of each kind
OWN = "$argon2id$v=19$m=19456,t=2,p=1$"  # the default cost
FIREBASE_KEY, FIREBASE_SALT = bytes(64), b"0123456789"


def _scrypt() -> str:
    salt = os.urandom(16)
    digest = hashlib.scrypt(PASSWORD.encode(), salt=salt, n=1 << 15, r=8, p=1, maxmem=1 << 26)
    parts = "$".join(base64.b64encode(part).decode().rstrip("=") for part in (salt, digest))
    return f"$scrypt$ln=15,r=8,p=1${parts}"


def _firebase() -> str:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = hashlib.scrypt(PASSWORD.encode(), salt=FIREBASE_SALT, n=1 << 14, r=8, p=1, maxmem=1 << 26, dklen=32)
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return firebase_text(14, 8, FIREBASE_KEY, b"", FIREBASE_SALT, encryptor.update(FIREBASE_KEY))


def _pbkdf2() -> str:
    salt = os.urandom(16)
    return passlib_text("sha512", 210_000, salt, hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), salt, 210_000))


KINDS: dict[str, Callable[[], str]] = {
    "bcrypt, cost 10 (Auth0)": lambda: bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10)).decode(),
    "PBKDF2-SHA512, 210,000 (Keycloak)": _pbkdf2,
    "Argon2id, 7 MiB, 5 passes (Keycloak)": lambda: argon2.PasswordHasher(5, 7168, 1).hash(PASSWORD),
    "scrypt, 32 MiB (Werkzeug)": _scrypt,
    "scrypt of Firebase, 16 MiB": _firebase,
}


def write_users(file: Path, count: int) -> None:
    hashes = [[make() for _ in range(3)] for make in KINDS.values()]
    with file.open("wb") as output:
        for number in range(count):
            kind = number % len(hashes)
            user = {
                "login": f"player{number}@example.com",
                "nick": f"Player {number}",
                "email_verified": number % 3 > 0,
                "source_id": f"5f{number:022x}",
                "password_hash": hashes[kind][number % 3],
            }
            output.write(orjson.dumps(user, option=orjson.OPT_APPEND_NEWLINE))


def import_file(server: Server, file: Path) -> dict[str, float]:
    command = (sys.executable, "-m", "sso", "import", "users", str(file), "--from", "jsonl")
    started = time.monotonic()
    with subprocess.Popen(command, env={**os.environ, **server.settings}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the import failed: {printed}")
    return {
        "seconds": round(time.monotonic() - started, 1),
        "CPU s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak MiB": round(usage.ru_maxrss / 1024),
    }


def sign_in(server: Server, kind: int) -> dict[str, float]:
    """Signs users of this kind in twice: with the imported hash, which is replaced, and with the new one."""
    durations: list[list[float]] = [[], []]
    with server.client() as http:
        for number in range(kind, SIGN_INS * len(KINDS), len(KINDS)):
            login = f"player{number}@example.com"
            for times in durations:
                started = time.monotonic()
                answer = http.post("/proxy/api/login", json={"login": login, "password": PASSWORD})
                times.append(time.monotonic() - started)
                if answer.status_code != 200:
                    raise RuntimeError(f"{login} cannot sign in: {answer.status_code}")
    return {
        name: round(sorted(times)[len(times) // 2] * 1000)
        for name, times in zip(("first sign-in ms", "next ms"), durations, strict=True)
    }


def count_replaced(server: Server, file: Path) -> int:
    server.sso("export", "users", str(file), "--with-hashes")
    with file.open("rb") as lines:
        return sum(orjson.loads(line)["password_hash"].startswith(OWN) for line in lines)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--users", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running(Path(name), **NO_LIMITS) as server:
        file = Path(name) / "users.jsonl"
        progress("making hashes …")
        write_users(file, options.users)
        progress("importing …")
        rows: list[dict[str, Any]] = [{"what": f"import of {options.users:,} users", **import_file(server, file)}]
        rows.append({"what": "the same file again", **import_file(server, file)})
        for kind, what in enumerate(KINDS):
            progress(f"signing in: {what} …")
            rows.append({"what": what, **sign_in(server, kind)})
        replaced = count_replaced(server, Path(name) / "exported.jsonl")
        if replaced != SIGN_INS * len(KINDS):
            raise RuntimeError(f"{replaced} hashes were replaced")
    show(rows, options.out)


if __name__ == "__main__":
    main()
