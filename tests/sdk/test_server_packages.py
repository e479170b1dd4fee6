"""Answers and arguments that must not mislead a game server, beyond the scenarios of the contract."""

import hashlib
import hmac
import json
import subprocess
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from sdk.contract.packages import SERVER_PACKAGES, Package
from sdk.contract.runner import SERVER_SCENARIOS
from tests.sdk.answering import answering
from tests.sdk.program import play

Item = dict[str, Any]
PACKAGES = [package for package in SERVER_PACKAGES if package.name in ("cpp", "csharp")]
# Not every package does all: some keep the set of keys if the clock is set back a little, and Python pauses for less
# than a second at first. Not every test program has a web site.
ONLY = {
    "clock_set_back": ("cpp", "csharp", "go"),
    "web_sign_in_without_keys": ("csharp",),
    "web_sign_in_without_token": ("csharp",),
    "check_has_a_pause": ("cpp", "csharp", "typescript", "go"),
}

CREDENTIALS: Item = {"do": "credentials", "client_id": "tanks-server", "client_secret": "s3cret"}
TOKEN = {"path": "POST /proxy/oauth/token", "answer": {"access_token": "access-1", "expires_in": 3600}}
AWAY = {**TOKEN, "status": 503, "answer": {"status": "ERROR"}, "headers": {"Retry-After": "31"}}
BUSY = {"status": 503, "headers": {"Retry-After": "0"}}

REDIRECT = {"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}, "answer": "<html>Sign in</html>"}

FOLLOW: list[Item] = [CREDENTIALS, {"do": "follow", "after": "100", "count": 1}]
CHANGES = {"path": "GET /api/admin/changes", "query": {"after": "100"}}
CHANGE = 'id: 101\nevent: user_disabled\ndata: {"id":"101","type":"user_disabled","user_id":"1000"}\n\n'
STREAM = {**CHANGES, "headers": {"Content-Type": "text/event-stream"}, "stream": [{"send": CHANGE}], "fault": "leave"}
CHANGED = {"event": "change", "id": "101", "type": "user_disabled"}

ASK = [{"do": "check", "questions": [{"user_id": "1000", "application_id": 10, "rule": "chat.kick"}]}]
EVALUATIONS = {"path": "POST /access/v1/evaluations"}

SCENARIO = json.loads((SERVER_SCENARIOS / "verify.json").read_text())
JWT, KEYS = SCENARIO["runs"][0][0], SCENARIO["requests"][0]
METADATA = {
    "path": "GET /.well-known/openid-configuration",
    "answer": {
        "issuer": "{base_url}",
        "authorization_endpoint": "{base_url}/proxy/oauth/authorize",
        "token_endpoint": "{base_url}/proxy/oauth/token",
        "jwks_uri": "{base_url}/proxy/oauth/keys",
    },
}
VERIFIED = {"event": "verified", "user_id": "1000"}

WITH_CALLERS = ("cpp", "csharp", "go")  # whose test programs have several callers
CALLERS = 16


def webhook(secret: str, body: str) -> Item:
    signature = hmac.new(secret.encode(), f"1794801300.{body}".encode(), hashlib.sha256).hexdigest()
    headers = {"Webhook-Signature": f"t=1794801300,v1={signature}"}
    return {"do": "webhook", "headers": headers, "body": body, "secret": secret, "now": 1794801300}


def refused(reason: str) -> Item:
    return {"event": "refused", "reason": reason}


def failed(reason: str) -> Item:
    return {"event": "failed", "reason": reason}


CASES: dict[str, tuple[list[Item], list[Item], list[Item]]] = {  # commands, requests, events
    "empty_factor": ([JWT, {**JWT, "factor": ""}], [KEYS], [VERIFIED, refused("factor")]),
    "clock_set_back": ([JWT, {**JWT, "now": JWT["now"] - 60}], [KEYS, KEYS], [VERIFIED, VERIFIED]),
    "webhook": (
        [webhook("", '{"id": "1"}'), webhook("key", '{"id": "1", "id": "2"}'), webhook("key", '{"id": "1"}')],
        [],
        [refused("signature"), refused("malformed"), {"event": "webhook", "id": "1"}],
    ),
    "check_without_a_token": (
        [CREDENTIALS, *ASK, *ASK],
        # It is not waited for as long as the first answer asks for.
        [AWAY, TOKEN, {**EVALUATIONS, "answer": {"evaluations": [{"decision": True}]}}],
        [failed("unavailable"), {"event": "checked", "answers": [True]}],
    ),
    "check_has_a_pause": (
        ASK,
        [{**EVALUATIONS, **BUSY}, {**EVALUATIONS, "answer": {"evaluations": [{"decision": True}]}, "not_before_s": 1}],
        [{"event": "checked", "answers": [True]}],
    ),
    "follow_has_a_pause": (FOLLOW, [TOKEN, {**CHANGES, **BUSY}, {**STREAM, "not_before_s": 1}], [CHANGED]),
    "token_is_refused": (
        FOLLOW,
        [{**TOKEN, "status": 400, "answer": {"error": "invalid_client"}}],
        [failed("invalid")],
    ),
    "large_event": (
        FOLLOW,
        [TOKEN, {**STREAM, "stream": [{"send": "data: " + "x" * (17 << 20)}]}],
        [failed("not_a_service")],
    ),
    "redirect": (
        [*ASK, *FOLLOW],
        [{**EVALUATIONS, **REDIRECT}, TOKEN, {**CHANGES, **REDIRECT}],
        [failed("not_a_service"), failed("not_a_service")],
    ),
    "web_sign_in_without_keys": (
        [{"do": "web_sign_in"}],
        [METADATA, {**TOKEN, "answer": {"id_token": JWT["jwt"]}}, {"path": KEYS["path"], **BUSY}],
        [failed("unavailable")],
    ),
    "web_sign_in_without_token": (
        [{"do": "web_sign_in"}],
        [METADATA, {**TOKEN, "status": 429, "answer": {"error": "slow_down"}}],
        [failed("unavailable")],
    ),
    "no_stream": (FOLLOW, [TOKEN, {**CHANGES, "answer": "<html>Welcome</html>"}], [failed("not_a_service")]),
}


def problems(
    package: Package, commands: list[Item], requests: list[Item], events: list[Item], folder: Path
) -> list[str]:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    (folder / "case.json").write_text(json.dumps({"runs": [commands], "requests": requests, "events": events}))
    return play("case", package.program, folder)


@pytest.mark.parametrize("package", SERVER_PACKAGES, ids=lambda package: package.name)
@pytest.mark.parametrize("case", CASES)
def test_server_is_not_misled(package: Package, case: str, tmp_path: Path) -> None:
    if package.name not in ONLY.get(case, (package.name,)):
        return
    assert problems(package, *CASES[case], tmp_path) == []


@pytest.mark.parametrize(
    "package",
    [package for package in SERVER_PACKAGES if package.name in WITH_CALLERS],
    ids=lambda package: package.name,
)
def test_callers_share_the_failure_to_fetch_a_token(package: Package, tmp_path: Path) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    fetches: list[str] = []

    def answer(path: str) -> tuple[int, str]:
        fetches.append(path)
        sleep(0.2)  # the other callers come meanwhile
        return 500, json.dumps({"error": "server_error"})

    with answering(answer) as base_url:
        command = [*package.program, base_url, str(tmp_path)]
        lines = "\n".join(json.dumps(item) for item in (CREDENTIALS, {**ASK[0], "callers": CALLERS}))
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=200)
    assert json.loads(done.stdout).items() >= failed("unavailable").items()
    assert len(fetches) < CALLERS  # a slow machine has more than one: some callers come after the first failure


def test_what_the_caller_of_csharp_throws_is_no_lost_connection(tmp_path: Path) -> None:
    [csharp] = [package for package in PACKAGES if package.name == "csharp"]
    commands: list[Item] = [CREDENTIALS, {"do": "follow", "after": "100", "count": 1, "throw": "the disk is full"}]
    events = [CHANGED, {"event": "thrown", "message": "the disk is full"}]
    assert problems(csharp, commands, [TOKEN, STREAM], events, tmp_path) == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
@pytest.mark.parametrize(("size", "event"), [(1000, "checked"), (17 << 20, "failed")])
def test_long_answer_is_not_read(package: Package, size: int, event: str, tmp_path: Path) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    answer = json.dumps({"evaluations": [{"decision": True}], "more": " " * size})
    with answering(lambda path: (200, answer)) as base_url:
        command = [*package.program, base_url, str(tmp_path)]
        done = subprocess.run(command, input=json.dumps(*ASK), capture_output=True, text=True, check=True, timeout=200)
    printed = json.loads(done.stdout)
    assert printed["event"] == event
    assert printed.get("reason", "unavailable") == "unavailable"
