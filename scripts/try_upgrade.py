"""Tries an upgrade: ``try_upgrade.py PATH_OF_OLD_SSO PATH_OF_NEW_SSO SECONDS``.

The old version creates a data directory with users, a web site's client and a session. The new version must accept all
of them, back them up while users log in, and restore the backup into an empty directory. Then both versions serve one
database for the given time, while users log in through both.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOGIN = "ann@example.com"
PASSWORD = "a password to try"
DOCUMENT = {
    "users": [{"login": LOGIN, "password": PASSWORD}, {"login": "bob@example.com", "password": PASSWORD}],
    "clients": [
        {"client_id": "site", "client_secret": "a secret to try it", "redirect_hosts": ["127.0.0.1"], "profile": "oidc"}
    ],
}
LOADERS = 4


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Installation:
    """An installed version of the program and the data directory that it uses."""

    def __init__(self, program: str, data: Path) -> None:
        self._program = program
        self._environment = {"PATH": os.environ["PATH"], "SSO_DATA_DIR": str(data), "SSO_BIND": "127.0.0.1:0"}
        self._environment["SSO_LOG_LEVEL"] = "error"
        self._log = data.with_suffix(".log")

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._program, *arguments], env=self._environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"sso {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    @contextmanager
    def serve(self, *arguments: str) -> Iterator[str]:
        """Yields the base URL of a running server."""
        command = [self._program, "serve", *arguments]
        with self._log.open("a") as log:
            server = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True)
        assert server.stdout
        try:
            ready = next(filter(None, (re.search(r"ready at (\S+)", line) for line in server.stdout)), None)
            assert ready, f"the server did not start: {self._log.read_text()[-500:]}"
            yield ready[1]
        finally:
            server.terminate()
            code = server.wait(60)
        assert code == 0, f"the server ended with exit code {code}"


def call(url: str, body: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{url}: {error.code} {error.read().decode()}") from None


def log_in(base_url: str, **body: str) -> str:
    """Logs in and returns the session token."""
    body = body or {"login": LOGIN, "password": PASSWORD}
    token: str = call(f"{base_url}/proxy/api/login", body)["token"]
    return token


def key_ids(base_url: str) -> set[str]:
    return {key["kid"] for key in call(f"{base_url}/api/permissions/keys")["keys"]}


@contextmanager
def load(base_url: str) -> Iterator[list[str]]:
    """Users log in with a session token, again and again. Yields the list of tokens that they got."""
    tokens: list[str] = []
    failures: list[AssertionError] = []
    stopped = threading.Event()

    def repeat() -> None:
        try:
            token = log_in(base_url)
            while not stopped.is_set():
                token = log_in(base_url, token=token)
                tokens.append(token)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=repeat) for _ in range(LOADERS)]
    for thread in threads:
        thread.start()
    try:
        yield tokens
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


def try_upgrade(old_program: str, new_program: str, folder: Path) -> None:
    data, backup, passphrase = folder / "data", folder / "sso.backup", folder / "passphrase"
    passphrase.write_text("a passphrase to try\n")
    old, new = Installation(old_program, data), Installation(new_program, data)

    say("the old version creates the data …")
    with old.serve("--apply", document_in(folder)) as base_url:
        token, keys = log_in(base_url), key_ids(base_url)

    say("the new version takes them over …")
    with new.serve() as base_url:
        assert keys <= key_ids(base_url), "a signing key is missing after the upgrade"
        token = log_in(base_url, token=token)
        log_in(base_url)
        say(f"signed in with the old session token and with the password; {len(keys)} signing keys kept")

        say("backup under load …")
        with load(base_url) as tokens:
            new.run("backup", str(backup), "--passphrase-file", str(passphrase))
        say(f"{len(tokens)} logins during the backup; the file has {backup.stat().st_size} bytes")

    say("restore into an empty directory …")
    restored = Installation(new_program, folder / "restored")
    restored.run("restore", str(backup), "--passphrase-file", str(passphrase))
    with restored.serve() as base_url:
        assert keys <= key_ids(base_url), "a signing key is missing after the restore"
        log_in(base_url)
        log_in(base_url, token=token)
        clients = restored.run("client", "list")
        assert "site" in clients, clients
    say("signed in with the password and with a session token from before the backup")


def try_together(old_program: str, new_program: str, folder: Path, seconds: float) -> None:
    """The new version upgrades the schema while the old one serves."""
    say(f"both versions serve one database for {seconds:.0f} s …")
    old, new = (Installation(program, folder / "shared") for program in (old_program, new_program))
    with old.serve("--apply", document_in(folder)) as old_url, load(old_url) as old_tokens:
        with new.serve() as new_url, load(new_url) as new_tokens:
            time.sleep(seconds)
        log_in(old_url, token=new_tokens[-1])
    say(f"{len(old_tokens)} logins through the old version, {len(new_tokens)} through the new one, none failed")


def document_in(folder: Path) -> str:
    document = folder / "document.json"
    document.write_text(json.dumps(DOCUMENT))
    return str(document)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sso-upgrade-") as name:
        Path(name).chmod(0o711)
        try_upgrade(*sys.argv[1:3], Path(name))
        if seconds := float(sys.argv[3]):
            try_together(*sys.argv[1:3], Path(name), seconds)
