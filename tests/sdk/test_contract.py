"""The contract of the game packages: each package keeps it, and a program that does not keep it is found out."""

import sys
from pathlib import Path

import pytest

from sdk.contract.packages import PACKAGES, SERVER_PACKAGES, Package
from sdk.contract.runner import SERVER_SCENARIOS, scenario_names
from sso.cli.play.scripted.script import BadScript, read_script
from tests.kit.long_tests import IS_LONG_RUN
from tests.sdk.program import play

SHORT = ("held_poll", "lost_connection", "signed_requests", "stages", "stored_token_ended", "link")
SERVER_SHORT = (
    *("verify", "verify_algorithms", "verify_malformed", "verify_unknown_key"),
    *("check", "check_unauthorized", "follow_reset", "follow_token_unavailable", "webhook", "webhook_signature"),
)
# The usual run plays the scenarios whose two forms in Python share no code.
ASYNC_SHORT = ("verify", "check", "follow_reset")
# A game in a few lines, which signs in by the rules.
GAME = """
import json, sys, time, urllib.request
base = sys.argv[1] + "/proxy/api/gameSession/"
def post(name, **fields):
    with urllib.request.urlopen(base + name, json.dumps(fields).encode()) as answer:
        return json.load(answer), answer.headers
def show(**event):
    print(json.dumps(event), flush=True)
sys.stdin.read()
session, headers = post("getGsid", factor="device-1")
gsid = session["gsid"]
show(event="show_link", url=sys.argv[1] + "/?gsid=" + gsid, words=session["match"])
proof = "?" + headers["Location"].partition("?")[2]
while (result := post("getGsidResult" + proof, gsid=gsid)[0])["status"] == "RETRY":
    time.sleep(result["delay"])
show(event="signed_in", user_id=result["user_id"], nick=result["nick"], guest=False)
post("closeGsid" + proof, gsid=gsid, status="Success")
"""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
@pytest.mark.parametrize("scenario", scenario_names() if IS_LONG_RUN else SHORT)
def test_package_keeps_the_contract(package: Package, scenario: str) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    if scenario in package.without:
        pytest.skip(f"{scenario}: the platform of {package.name} cannot do this")
    assert play(scenario, package.program) == []


@pytest.mark.parametrize(
    ("scenario", "package"),
    [
        pytest.param(scenario, package, id=f"{scenario}-{package.name}")
        for scenario in (scenario_names(SERVER_SCENARIOS) if IS_LONG_RUN else SERVER_SHORT)
        for package in SERVER_PACKAGES
        if IS_LONG_RUN or package.name != "python-async" or scenario in ASYNC_SHORT
    ],
)
def test_server_package_keeps_the_contract(package: Package, scenario: str) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    if scenario in package.without:
        pytest.skip(f"{scenario}: the platform of {package.name} cannot do this")
    assert play(scenario, package.program, SERVER_SCENARIOS) == []


@pytest.mark.parametrize(
    ("scenario", "line", "wrong", "problem"),
    [
        ("held_poll", "", "", ""),
        ("retry_later", "", "", ""),
        ("retry_later", 'time.sleep(result["delay"])', "pass", "too early"),
        ("held_poll", 'factor="device-1"', 'factor="device-2"', "field factor is 'device-2'"),
        ("held_poll", '"getGsidResult" + proof', '"getGsidResult"', "parameter Location is None"),
        ("held_poll", 'post("closeGsid"', "# ", "closeGsid was expected and did not come"),
        ("held_poll", 'show(event="signed_in"', 'show(event="arrived"', "event 2"),
        ("held_poll", 'show(event="signed_in"', '(lambda **_: None)(event="signed_in"', "is missing"),
        ("held_poll", "sys.stdin.read()", 'print("hello")', "printed 'hello'"),
        ("held_poll", "sys.stdin.read()", "sys.exit(3)", "ended with 3"),
        ("held_poll", "gsid=gsid, status", 'more=post("getGsid"), gsid=gsid, status', "closeGsid was expected"),
    ],
)
def test_program_that_breaks_the_contract_is_found(
    scenario: str, line: str, wrong: str, problem: str, tmp_path: Path
) -> None:
    assert line in GAME
    program = tmp_path / "game.py"
    program.write_text(GAME.replace(line, wrong) if line else GAME)
    problems = play(scenario, (sys.executable, str(program)))
    assert any(problem in text for text in problems) if problem else problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "the document: Invalid JSON"),
        ("{}", "requests: "),
        ('{"requests": [{"path": "/x"}]}', "requests.0.path: "),
        ('{"requests": [{"path": "GET /x", "hold_s": 3600}]}', "requests.0.hold_s: "),
        ('{"requests": [{"path": "GET /x"}], "speed": 1}', "speed: "),
    ],
)
def test_wrong_script_is_named_with_its_field(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(text)
    with pytest.raises(BadScript, match=r"script\.json: ") as refused:
        read_script(file)
    assert problem in str(refused.value)
