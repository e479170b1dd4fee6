"""Measures the memory of each process of the service, with two workers and the embedded PostgreSQL: idle and loaded.

RSS counts shared pages for each process. PSS divides them among the processes that share them, so that the sum is what
the service really takes. PostgreSQL itself is not included. Then a single worker shows how its private memory grows by
10,000 held polls, WebSockets and cached users.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from scripts.benchmarks import memory_growth
from scripts.benchmarks.oauth_service import SETTINGS, benchmark_state, service_target
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_work import WORK
from scripts.benchmarks.report import Steps, arguments, process_tree, show
from tests.kit import postgres
from tests.kit.server import SSO, running

CONNECTIONS = 32
LOADS = ("userinfo", "refresh", "redeem", "flow")
_ROLE = re.compile(r"sso-(\w+)-\d+")


def memory_of(pid: int) -> dict[str, float]:
    """RSS, PSS and private memory in MiB."""
    sizes = dict(re.findall(r"^(\w+): +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE))
    private = int(sizes["Private_Clean"]) + int(sizes["Private_Dirty"])
    return {"RSS": int(sizes["Rss"]) / 1024, "PSS": int(sizes["Pss"]) / 1024, "private": private / 1024}


def processes(supervisor: int) -> dict[str, int]:
    """The processes of the service by name."""
    found = {"supervisor": supervisor}
    for pid in process_tree(supervisor)[1:]:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if _ROLE.match(name):
            found[name.removeprefix("sso-")] = pid
    return found


def rows(supervisor: int, when: str) -> list[dict[str, Any]]:
    measured = {name: memory_of(pid) for name, pid in processes(supervisor).items()}
    total = {key: sum(sizes[key] for sizes in measured.values()) for key in ("RSS", "PSS", "private")}
    return [{"when": when, "process": name, **sizes} for name, sizes in (measured | {"all": total}).items()]


def apply_load(target: Target, seconds: float, steps: Steps) -> None:
    for name in LOADS:
        steps.next(name)
        WORK[name](target, CONNECTIONS, seconds)()


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--count", type=int, default=10_000, help="polls, sockets and users to measure")
    options = parser.parse_args()
    steps = Steps(len(LOADS) + 1 + 3)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), SSO, **SETTINGS, SSO_WORKERS="2") as server:
        steps.next("idle")
        assert server.process is not None
        table = rows(server.process.pid, "idle")
        document = Path(folder) / "state.json"
        document.write_text(json.dumps(benchmark_state()))
        server.sso("apply", str(document))
        apply_load(service_target(server), options.seconds, steps)
        table += rows(server.process.pid, "after load")
    with postgres.running() as database:
        table += memory_growth.rows(database, options.count, steps)
    show(table, options.out)


if __name__ == "__main__":
    main()
