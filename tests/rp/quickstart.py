"""Runs a quickstart as its page says: registers the client, and starts its program with the commands of the page.

Only the addresses differ: the service and the program listen on other ports than those of the page.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from tests.kit.ports import free_port, is_listening
from tests.kit.server import Server, until

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".rp"
SERVICE = "localhost:8000"
START_S = 300  # some commands compile
_BLOCK = re.compile(r"^\.\. code-block:: shell\n\n((?:    .*\n|\n)+)", re.MULTILINE)
# Commands whose work scripts/rp or the constructor has done.
_INSTALLATION = ("python3 -m venv", ".venv/bin/pip", "npm install", "sudo apt-get", "export CLIENT_SECRET=", "cd ")


class Quickstart:
    """A registered client and a copy of its program in ``folder``.

    ``port`` is the program's port on the page. ``packages`` is where its packages are installed: a folder node_modules,
    or a virtual environment of Python.
    """

    def __init__(self, server: Server, folder: Path, name: str, port: str = "", packages: Path | None = None) -> None:
        self._addresses = {SERVICE: server.base_url.removeprefix("http://")}
        self.port = free_port() if port else 0
        if port:
            self._addresses[port] = str(self.port)
        page = self._adapted((ROOT / f"docs/quickstarts/{name}.rst").read_text()).replace("\\\n", "")
        self._lines = [line.strip() for block in _BLOCK.findall(page) for line in block.splitlines() if line]
        self.folder = folder / name
        self._copy(ROOT / "examples" / name)
        if packages:
            link = packages.name if packages.name == "node_modules" else ".venv"
            (self.folder / link).symlink_to(packages)
        self.secret = self._register(server)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def commands(self) -> list[str]:
        """The commands of the page after the registration and the installation."""
        return [line for line in self._lines if not line.startswith((*_INSTALLATION, "scripts/sso "))]

    def command(self, *lines: str) -> list[str]:
        return ["bash", "-ec", "\n".join(lines or self.commands)]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return kept | {"CLIENT_SECRET": self.secret, "PWD": str(self.folder), "PYTHONUNBUFFERED": "1"}

    def run(self, *lines: str) -> str:
        """Runs commands of the page and returns what they print."""
        done = subprocess.run(
            self.command(*lines),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Runs the program. Enters when the program listens."""
        log = self.folder / "output.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            assert until(lambda: is_listening(self.port) or process.poll() is not None, START_S)
            assert process.poll() is None, log.read_text()
            yield self
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)

    def _adapted(self, text: str) -> str:
        pattern = "|".join(rf"(?<!\d){re.escape(address)}(?!\d)" for address in self._addresses)
        return re.sub(pattern, lambda found: self._addresses[found[0]], text)

    def _copy(self, example: Path) -> None:
        def copy(source: str, target: str) -> None:
            Path(target).write_text(self._adapted(Path(source).read_text()))
            shutil.copymode(source, target)

        ignored = shutil.ignore_patterns("node_modules", ".venv", "__pycache__", "*.sqlite3")
        shutil.copytree(example, self.folder, copy_function=copy, ignore=ignored)

    def _register(self, server: Server) -> str:
        (line,) = [line for line in self._lines if line.startswith("scripts/sso client add ")]
        printed = server.sso(*shlex.split(line)[1:]).stdout
        found = re.search(r"^client_secret (\S+)$", printed, re.MULTILINE)
        return found[1] if found else ""
