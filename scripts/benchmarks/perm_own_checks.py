"""The checks of this project in the comparison: a replica in memory, ``sso replica``, and the service."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import httpx
import orjson

from scripts.benchmarks.http_clients import Answer, RequestFailed, Scenario, request, run
from scripts.benchmarks.perm_model import (
    PAIRS,
    ROLES,
    RULES,
    PeerCosts,
    PeerModel,
    PeerUser,
    measure_in_process,
    require_equal,
)
from scripts.benchmarks.perm_work import PermissionTarget
from scripts.benchmarks.report import cpu_seconds, process_tree
from sso.perm.replica.answers import CHECK
from sso.replica.replica import Replica
from tests.kit import postgres
from tests.kit.server import SSO, clean_environment, until
from tests.perm.endpoints.tokens import ServiceKey

CONNECTIONS = 32
SECRET = "the secret of the replica of the benchmark"


def own_checks(
    model: PeerModel, target: PermissionTarget, database: postgres.Postgres, seconds: float
) -> Iterator[dict[str, Any]]:
    studio, server = target.studio, target.server
    application_id = studio.application(studio.project())
    service_jwt = ServiceKey().trusted_by(studio, application_id).sign(server, application_id)
    _save_model(model, target, application_id)
    with Replica(application_id, server=server.base_url, client_id="peers", client_secret=SECRET) as replica:
        assert replica.wait_until_ready(60)
        yield _replica(model, replica, seconds)
    with _sidecar(target, application_id) as (address, pid):
        yield _over_http(model, "sso replica, its server", address, [pid], {}, application_id, seconds)
    processes = [*server.workers(), *process_tree(database.pid())]
    sent = {"Authorization": f"Bearer {target.player.jwt}", "Service-Jwt": service_jwt}
    yield _over_http(model, "the service with its database", server.base_url, processes, sent, application_id, seconds)


def _save_model(model: PeerModel, target: PermissionTarget, application_id: int) -> None:
    rules = {f"rule{at}": {"value": True} for at in range(RULES)}
    roles = [{"name": f"role{area}", "meta": {"private_data": {f"area{area}": rules}}} for area in range(ROLES)]
    client: dict[str, Any] = {"client_id": "peers", "client_secret": SECRET, "profile": "oidc"}
    client |= {"grant_types": ["client_credentials"], "application_id": application_id}
    target.server.apply({"clients": [client], "roles": {str(application_id): roles}})
    for user in model.users:
        data = {"user_id": user.user_id, "roles": [f"role{role}" for role in user.roles]}
        saved = target.studio.root.call("meta/data", action="save", application_id=application_id, data=data)
        assert saved.status == 200, saved


def _question(user: PeerUser, area: int, rule: int) -> dict[str, Any]:
    return {"user_id": user.user_id, "rule": f"area{area}.rule{rule}"}


def _replica(model: PeerModel, replica: Replica, seconds: float) -> dict[str, Any]:
    def ask_one(user: PeerUser, area: int, rule: int) -> bool:
        return replica.check(user.user_id, f"area{area}.rule{rule}")

    def ask_all(user: PeerUser) -> Sequence[bool]:
        questions = [_question(user, *pair) for pair in PAIRS]
        body = replica.answer(CHECK, {"data": {"questions": questions}}).body
        return [answer["allow"] for answer in body["data"]]

    return measure_in_process(model, "Replica, in process", ask_one, ask_all, seconds)


@contextmanager
def _sidecar(target: PermissionTarget, application_id: int) -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [*SSO, "replica", "--server", target.server.base_url, "--application", str(application_id)]
        command += ["--bind", "127.0.0.1:0", "--data-dir", folder]
        settings = clean_environment(SSO_CLIENT_ID="peers", SSO_CLIENT_SECRET=SECRET)
        with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                address = f"http://{process.stdout.readline().split()[-1]}"
                assert until(lambda: httpx.get(f"{address}/readyz").is_success)
                yield address, process.pid
            finally:
                process.terminate()


def _over_http(
    model: PeerModel,
    engine: str,
    address: str,
    pids: Sequence[int],
    headers: dict[str, str],
    application_id: int,
    seconds: float,
) -> dict[str, Any]:
    def sent(questions: Sequence[dict[str, Any]]) -> bytes:
        body = {"application_id": application_id, "data": {"questions": questions}}
        return request("POST", CHECK, {"Content-Type": "application/json", **headers}, orjson.dumps(body))

    many = [sent([_question(user, *pair) for pair in PAIRS]) for user in model.users]
    one = [sent([_question(user, *PAIRS[number % len(PAIRS)])]) for number, user in enumerate(model.users)]
    _load(address, many, 0.5)  # this opens connections and compiles the application
    answers: dict[bytes, list[bool]] = {}
    costs = []
    for requests in (one, many):
        before = cpu_seconds(pids)
        count = _load(address, requests, seconds, answers)
        costs.append((cpu_seconds(pids) - before) / count)
    require_equal(model, engine, [answer for body in many for answer in answers[body]])
    return PeerCosts(costs[0], costs[1] / len(PAIRS)).row(engine)


def _load(
    address: str, requests: Sequence[bytes], seconds: float, answers: dict[bytes, list[bool]] | None = None
) -> int:
    """Repeats the requests. Returns how many were answered, and puts the answers into ``answers``."""
    turns = cycle(requests)

    def ask(_number: int) -> Scenario:
        body = next(turns)
        answer: Answer = yield body
        if answer.status != 200:
            raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")
        if answers is not None and body not in answers:
            answers[body] = [item["allow"] for item in orjson.loads(answer.body)["data"]]

    tally = run(address, CONNECTIONS, seconds, ask)
    if tally.failures:
        raise RequestFailed(tally.failures[0])
    return len(tally.took)
