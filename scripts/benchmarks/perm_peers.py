"""Other permission engines, in the process of the benchmark: pycasbin, and Cedar (cedarpy), if it can be installed.

They answer from memory, without a server, credentials or a database. Cerbos and the embedded engine of SpiceDB, which
npm has, are not among them.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import casbin

from scripts.benchmarks.perm_work import MET_ROLES, QUESTIONS, RULES

UV = shutil.which("uv") or str(Path(".uv/bin/uv").absolute())
ROLES = 10


def repeat(work: Any, seconds: float) -> float:
    """Returns the CPU seconds of one call."""
    count, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        for _ in range(20):
            work()
        count += 20
    return (time.process_time() - started) / count


def casbin_enforcer(roles: int) -> Any:
    """Returns a pycasbin enforcer with the same result: the user has three of as many roles."""
    model = casbin.Enforcer.new_model(
        text="""
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act
"""
    )
    enforcer = casbin.Enforcer(model)
    enforcer.add_policies(
        [[f"role{number}", f"area{number}", f"rule{at}"] for number in range(roles) for at in range(RULES)]
    )
    enforcer.add_grouping_policies([["ann", f"role{number}"] for number in range(3)])
    return enforcer


def peer_checks(seconds: float) -> list[dict[str, Any]]:
    """One check each: a user with three of ten roles."""
    enforcer = casbin_enforcer(ROLES)
    asked = [("ann", f"area{number % 6}", f"rule{number % RULES}") for number in range(QUESTIONS)]
    took = repeat(lambda: [enforcer.enforce(*question) for question in asked], seconds) / QUESTIONS
    return [
        {"what": "check: pycasbin, in process", "roles": ROLES, "us": took * 1e6, "per second": 1 / took},
        _cedar(seconds),
    ]


def _cedar(seconds: float) -> dict[str, Any]:
    row: dict[str, Any] = {"what": "check: Cedar (cedarpy), in process", "roles": ROLES}
    with _installed("cedarpy") as problem:
        if problem:
            return row | {"note": problem}
        import cedarpy  # type: ignore[import-not-found, unused-ignore]

        policy = 'permit (principal in Role::"role{0}", action == Action::"rule{1}", resource == Area::"area{0}");'
        policies = "\n".join(policy.format(number, at) for number in range(ROLES) for at in range(RULES))
        parents = [{"type": "Role", "id": f"role{number}"} for number in range(MET_ROLES)]
        roles = [{"uid": parent, "attrs": {}, "parents": []} for parent in parents]
        entities = [{"uid": {"type": "User", "id": "ann"}, "attrs": {}, "parents": parents}, *roles]
        requests = [
            {
                "principal": 'User::"ann"',
                "action": f'Action::"rule{number % RULES}"',
                "resource": f'Area::"area{number % 6}"',
                "context": {},
            }
            for number in range(QUESTIONS)
        ]
        results = cedarpy.is_authorized_batch(requests, policies, entities)
        assert [result.allowed for result in results[:6]] == [True] * MET_ROLES + [False] * (6 - MET_ROLES)
        took = repeat(lambda: cedarpy.is_authorized_batch(requests, policies, entities), seconds) / QUESTIONS
        return row | {"us": took * 1e6, "per second": 1 / took}


@contextmanager
def _installed(package: str) -> Iterator[str]:
    """Installs a package into a temporary folder. Yields what is wrong, or an empty string."""
    with tempfile.TemporaryDirectory() as folder:
        command = [UV, "pip", "install", "--quiet", "--target", folder, "--python", sys.executable, package]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            yield f"cannot be installed: {error}"
            return
        if done.returncode:
            yield f"cannot be installed: {done.stderr.strip()[-100:]}"
            return
        sys.path.insert(0, folder)
        try:
            yield ""
        finally:
            sys.path.remove(folder)
