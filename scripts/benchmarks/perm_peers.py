"""Compares checks with other permission engines in one run: the same model, the same questions, the same answers.

In the process of the caller: pycasbin, Cedar (cedarpy), the embedded engine of SpiceDB, and a replica. Servers: Cerbos,
``sso replica``, and this service with its database; of these, the CPU time of the client is not counted.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import casbin

from scripts.benchmarks.npm_peers import npm_checks
from scripts.benchmarks.perm_model import PAIRS, ROLES, RULES, PeerModel, PeerUser, measure_in_process
from scripts.benchmarks.perm_own_checks import own_checks
from scripts.benchmarks.perm_work import PermissionTarget, running_target
from scripts.benchmarks.report import arguments, show
from tests.kit import postgres

UV = shutil.which("uv") or str(Path(".uv/bin/uv").absolute())


def casbin_enforcer(roles: int) -> Any:
    """Returns a pycasbin enforcer with the same result: a role gives the rules of its area."""
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
    return enforcer


def peer_checks(target: PermissionTarget, database: postgres.Postgres, seconds: float) -> list[dict[str, Any]]:
    model = PeerModel.of(target.players)
    rows = [_casbin(model, seconds), _cedar(model, seconds), *npm_checks(model, seconds)]
    return [*rows, *own_checks(model, target, database, seconds)]


def _casbin(model: PeerModel, seconds: float) -> dict[str, Any]:
    enforcer = casbin_enforcer(ROLES)
    enforcer.add_grouping_policies([[user.user_id, f"role{role}"] for user in model.users for role in user.roles])

    def question(user: PeerUser, area: int, rule: int) -> list[str]:
        return [user.user_id, f"area{area}", f"rule{rule}"]

    def ask_all(user: PeerUser) -> Sequence[bool]:
        answers: list[bool] = enforcer.batch_enforce([question(user, *pair) for pair in PAIRS])
        return answers

    def ask_one(user: PeerUser, area: int, rule: int) -> bool:
        return bool(enforcer.enforce(*question(user, area, rule)))

    return measure_in_process(model, "pycasbin, in process", ask_one, ask_all, seconds)


def _cedar(model: PeerModel, seconds: float) -> dict[str, Any]:
    """Policies and entities are parsed once."""
    engine = "Cedar (cedarpy), in process"
    with _installed("cedarpy") as problem:
        if problem:
            return {"what": f"check: {engine}", "note": problem}
        import cedarpy  # type: ignore[import-not-found, unused-ignore]

        policy = 'permit (principal in Role::"role{0}", action == Action::"rule{1}", resource == Area::"area{0}");'
        policies = cedarpy.PolicySet.from_str("\n".join(policy.format(*pair) for pair in PAIRS))
        entities = cedarpy.Entities.from_json_str(_entities(model))

        def question(user: PeerUser, area: int, rule: int) -> dict[str, Any]:
            return {
                "principal": {"type": "User", "id": user.user_id},
                "action": {"type": "Action", "id": f"rule{rule}"},
                "resource": {"type": "Area", "id": f"area{area}"},
                "context": {},
            }

        def ask_one(user: PeerUser, area: int, rule: int) -> bool:
            return bool(cedarpy.is_authorized(question(user, area, rule), policies, entities).allowed)

        def ask_all(user: PeerUser) -> Sequence[bool]:
            questions = [question(user, *pair) for pair in PAIRS]
            return [answer.allowed for answer in cedarpy.is_authorized_batch(questions, policies, entities)]

        return measure_in_process(model, engine, ask_one, ask_all, seconds)


def _entities(model: PeerModel) -> str:
    roles = [{"type": "Role", "id": f"role{number}"} for number in range(ROLES)]
    users = [
        {"uid": {"type": "User", "id": user.user_id}, "attrs": {}, "parents": [roles[number] for number in user.roles]}
        for user in model.users
    ]
    return json.dumps([*users, *({"uid": role, "attrs": {}, "parents": []} for role in roles)])


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


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    with postgres.running() as database, running_target(database.fresh()) as target:
        show(peer_checks(target, database, options.seconds), options.out)


if __name__ == "__main__":
    main()
