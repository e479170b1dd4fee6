"""Other OAuth servers to compare with: a folder of scripts that install, start and stop them.

The folder is named by SSO_PEERS; where they are installed, by PEERS_DIR. ``NAME.sh start STORE`` leaves its process
id in ``$PEERS_DIR/run/NAME.pid``, and ``load/targets/NAME.json`` says where things are.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.benchmarks.oauth_work import Target
from scripts.benchmarks.report import family

START_S = 60
CLIENT_ID = "bench"
CLIENT_SECRET = "bench-secret-0123456789abcdef0123456789"
REDIRECT_URI = "http://127.0.0.1:9999/cb"
PASSWORD = "pw-bench-1"
USERS = 64


class Peers:
    def __init__(self, scripts: Path, work: Path) -> None:
        self._scripts = scripts
        self._work = work

    @classmethod
    def find(cls) -> "Peers":
        scripts = Path(os.environ.get("SSO_PEERS", ""))
        if not (scripts / "env.sh").is_file():
            raise SystemExit("there is nothing to compare with: SSO_PEERS must name a folder of peers' scripts")
        work = Path(os.environ.get("PEERS_DIR", ""))
        if not (work / "run").is_dir():
            raise SystemExit(f"the peers are not installed: set PEERS_DIR and run {scripts}/install.sh")
        return cls(scripts, work)

    @contextmanager
    def database(self) -> Iterator[str]:
        """Their PostgreSQL. Whoever is compared uses the same one."""
        self._run("db.sh", "start")
        try:
            yield f"postgresql://peers@127.0.0.1:{os.environ.get('PG_PORT', '5471')}"
        finally:
            self._run("db.sh", "stop")

    def database_pid(self) -> int:
        return self._pid("postgres")

    @contextmanager
    def running(self, name: str, store: str) -> Iterator[tuple[Target, list[int]]]:
        """A peer, and the processes it consists of."""
        self._run(f"{name}.sh", "start", store)
        try:
            yield self._target(name), family(self._pid(name))
        finally:
            self._run(f"{name}.sh", "stop")

    def _target(self, name: str) -> Target:
        found = json.loads((self._scripts / f"load/targets/{name}.json").read_text())
        return Target(
            base_url=found["base"],
            jwks=found["jwks"],
            userinfo=found["userinfo"],
            token=found["token"],
            authorize=found["authorize"],
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            redirect_uri=REDIRECT_URI,
            users=[f"u{number}" for number in range(USERS)],
            password=PASSWORD,
        )

    def _pid(self, name: str) -> int:
        return int((self._work / f"run/{name}.pid").read_text())

    def _run(self, script: str, *arguments: str) -> None:
        settings = os.environ | {"PEERS_DIR": str(self._work), "BENCH_USERS": str(USERS)}
        command = ["bash", str(self._scripts / script), *arguments]
        # Not into a pipe: what they start would keep it open.
        done = subprocess.run(
            command, env=settings, check=False, timeout=START_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if done.returncode and arguments[0] == "start":
            raise SystemExit(f"{' '.join(command)} failed")
