"""Other OAuth servers to compare with: a folder of scripts that install, start and stop them.

SSO_PEERS names the folder, PEERS_DIR the place where they are installed. A peer is named by its script and the script's
arguments: ``node:postgres:2`` runs ``node.sh start postgres 2``. The script writes its process id to
``$PEERS_DIR/run/NAME.pid``; ``load/targets/NAME.json`` has the endpoints and peculiarities of the server.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from scripts.benchmarks.http_clients import BenchmarkError
from scripts.benchmarks.oauth_target import SinglePage, Target
from scripts.benchmarks.report import process_tree

RUN_S = 60
ANSWERS_S = 5
CLIENT_ID = "bench"
CLIENT_SECRET = "bench-secret-0123456789abcdef0123456789"
REDIRECT_URI = "http://127.0.0.1:9999/cb"
PASSWORD = "pw-bench-1"
USERS = 64
TRIES = 6
SINGLE_PAGES = {"glewlwyd": SinglePage("/api/auth/", "g_continue")}


class Peers:
    def __init__(self, scripts: Path, work: Path) -> None:
        self._scripts = scripts
        self._work = work

    @classmethod
    def find(cls) -> "Peers":
        scripts = Path(os.environ.get("SSO_PEERS", ""))
        if not (scripts / "env.sh").is_file():
            raise SystemExit("SSO_PEERS must name a folder with the scripts of the peers")
        work = Path(os.environ.get("PEERS_DIR", ""))
        if not (work / "run").is_dir():
            raise SystemExit(f"the peers are not installed: set PEERS_DIR and run {scripts}/install.sh")
        return cls(scripts, work)

    @contextmanager
    def database(self) -> Iterator[str]:
        """Runs the PostgreSQL that all compared servers use. Yields its base URL."""
        if not self._run("db.sh", "start"):
            raise SystemExit(f"the peers' database does not start: see {self._work}/run/postgres.log")
        try:
            yield f"postgresql://peers@127.0.0.1:{os.environ.get('PG_PORT', '5471')}"
        finally:
            self._run("db.sh", "stop")

    def database_pid(self) -> int:
        return self._pid("postgres")

    @contextmanager
    def running(self, peer: str) -> Iterator[tuple[Target, Callable[[], list[int]]]]:
        """Starts a peer, named as script:argument:argument. Yields its target and its processes."""
        script, *arguments = peer.split(":")
        kind = self._kind(script)
        self._run(f"{script}.sh", "start", *arguments)  # its exit code is not reliable
        try:
            target = self._target(kind)
            if not _answers(target):
                raise BenchmarkError(f"{peer} does not start: see {self._work}/run/{kind}.log")
            yield target, lambda: process_tree(self._pid(kind))
        finally:
            self._run(f"{script}.sh", "stop")

    def _kind(self, script: str) -> str:
        """Returns the name of the script's target file, which begins with the name of the script."""
        found = sorted(path.stem for path in (self._scripts / "load/targets").glob(f"{script}*.json"))
        if not found or not (self._scripts / f"{script}.sh").is_file():
            raise BenchmarkError(f"there is no peer {script}")
        return found[0]

    def _target(self, kind: str) -> Target:
        found = json.loads((self._scripts / f"load/targets/{kind}.json").read_text())
        mode = {"response_mode": found["response_mode"]} if "response_mode" in found else {}
        return Target(
            base_url=found["base"],
            jwks=found["jwks"],
            userinfo=found["userinfo"],
            token=found["token"],
            authorize=found["authorize"],
            introspect=found.get("introspect", ""),
            client_credentials=found.get("client_credentials", False),
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            redirect_uri=REDIRECT_URI,
            users=[f"u{number}" for number in range(USERS)],
            password=PASSWORD,
            scope=found.get("scope", Target.scope),
            authorize_params=mode | found.get("authorize_params", {}),
            token_params=found.get("token_params"),
            token_headers=found.get("token_headers", {}),
            refresh_params={"redirect_uri": REDIRECT_URI} if found.get("refresh_redirect_uri") else {},
            single_page=SINGLE_PAGES.get(found["flow"]),
            at_once=found.get("seed_par", Target.at_once),
            tries=TRIES,
            spare_chains=found.get("spare_chains", 0),
        )

    def _pid(self, name: str) -> int:
        return int((self._work / f"run/{name}.pid").read_text())

    def _run(self, script: str, *arguments: str) -> bool:
        settings = os.environ | {"PEERS_DIR": str(self._work), "BENCH_USERS": str(USERS)}
        command = ["bash", str(self._scripts / script), *arguments]
        # No pipe for the output: the started processes would keep it open.
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command, env=settings, check=False, timeout=RUN_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            return done.returncode == 0
        return False


def _answers(target: Target) -> bool:
    end = time.monotonic() + ANSWERS_S
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            return httpx.get(target.base_url + target.jwks).status_code == 200
        time.sleep(0.1)
    return False
