"""The examples of docs/games.rst, docs/sign_requests.rst and docs/game_sessions.rst work as shown."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, wrap_client_stream

from tests.kit.browser import Browser, fresh_browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.documented_examples import agrees
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join((DOCS / f"{name}.rst").read_text() for name in ("games", "sign_requests", "game_sessions"))
BASE = "/proxy/api/gameSession"
STEP = re.compile(
    r"^    Ann opens /\?gsid=\{(?P<opened>\w+)\} and (?P<deed>.+)\n"
    r"|^    POST (?P<path>/\S+)\n(?P<request>(?:    .*\n)+?)    (?P<status>\d{3})\n"
    r"(?:    Location: (?P<location>\S+)\n)?(?P<answer>(?:    .*\n)+)",
    re.M,
)


@pytest.fixture(scope="module")
def quick(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with default settings except for a short hold time of polls."""
    dsn = postgres_server.fresh()
    with running(tmp_path_factory.mktemp("games"), **QUICK, SSO_DATABASE_URL=dsn, SSO_GSID_HOLD_S="1") as server:
        yield server
    postgres_server.drop(dsn)


def filled(text: str, names: dict[str, Any]) -> Any:
    text = re.sub(r'"app_id": "\{(\w+)\}"', lambda found: f'"app_id": {names[found[1]]}', text)
    return json.loads(re.sub(r"\{(\w+)\}", lambda found: str(names.get(found[1], found[0])), text))


def test_requests_and_responses_agree_with_the_page(quick: Server) -> None:
    quick.apply({"applications": [{"application_id": 12, "name": "Tanks"}]})
    login = new_user(quick)
    names: dict[str, Any] = {"tanks": 12}
    seen = 0
    with quick.client() as http:
        names["ann"] = http.post("/proxy/api/login", json={"login": login, "password": PASSWORD}).json()["user_id"]
        for step in STEP.finditer(TEXT):
            if step["deed"]:
                act(quick, login, names[step["opened"]], step["deed"])
                continue
            answer = http.post(step["path"], json=filled(step["request"], names))
            assert answer.status_code == int(step["status"]), (step[0], answer.text)
            assert agrees(filled(step["answer"], names), answer.json(), names), (step[0], answer.json())
            if step["location"]:
                fixed = step["location"].replace("{base_url}", quick.base_url).removesuffix("…")
                assert answer.headers["Location"].startswith(fixed)
            seen += 1
    assert seen == 9
    output = quick.sso("why", names["record"]).stdout
    shown = re.search(r"\$ sso why \w+\n((?:    .*\n)+)", TEXT)
    assert shown
    assert [line.split()[0] for line in output.splitlines()] == [line.split()[0] for line in shown[1].splitlines()]
    assert "repeated attempt to obtain the data" in output


def act(server: Server, login: str, gsid: str, deed: str) -> None:
    if deed == "signs in":
        with Browser(server) as browser:
            browser.get(f"/?gsid={gsid}")
            assert browser.submit("/login", login=login, password=PASSWORD).status_code == 303
    else:
        assert deed == 'says "This was not me"'
        with fresh_browser(server, login) as browser:
            browser.follow(browser.get(f"/?gsid={gsid}"))
            assert browser.submit(f"/game/{gsid}/deny").status_code == 200


def test_websocket_events_agree_with_the_page(quick: Server) -> None:
    part = TEXT.split("The WebSocket\n----")[1]
    expected = [json.loads(line) for line in re.findall(r'^    (\{"event".*\})$', part, re.M)]
    login = new_user(quick)
    with quick.client() as http:
        gsid = http.post(f"{BASE}/getGsid", json={}).json()["gsid"]
    found: list[Any] = []

    def fetch() -> None:
        with Browser(quick) as browser:
            browser.get(f"/?gsid={gsid}")
            # Otherwise the second stage may replace the first one before it is sent.
            assert until(lambda: any(frame.get("stage") == "opened" for frame in found))
            assert browser.submit("/login", login=login, password=PASSWORD).status_code == 303
        with quick.client() as http:
            assert http.post(f"{BASE}/getGsidResult", json={"gsid": gsid}).json()["status"] == "OK"

    async def listen() -> int:
        host, port = quick.base_url.removeprefix("http://").split(":")
        path = f"/ws/gameSession/refresh/{gsid}"
        with trio.fail_after(60):
            # The library would leave its own stream open when the server closes first.
            async with await trio.open_tcp_stream(host, int(port)) as stream, trio.open_nursery() as nursery:
                socket = await wrap_client_stream(nursery, stream, host, path)
                try:
                    while True:
                        found.append(json.loads(await socket.get_message()))
                        if len(found) == 1:
                            nursery.start_soon(trio.to_thread.run_sync, fetch)
                except ConnectionClosed as closed:
                    return closed.reason.code if closed.reason else 0

    assert trio.run(listen) == 1000
    found = [frame for frame in found if frame.get("stage") not in ("", "signing_in")]
    found[1:] = [frame for frame in found[1:] if frame["event"] != "refresh"]
    assert agrees(expected, found, {"gsid": gsid}), found


# Signing


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("key")


@pytest.fixture(scope="module", autouse=True)
def key(key_folder: Path) -> dict[str, str]:
    """A key made by the shell example, which the other examples use."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed: apt-get install openssl")
    code = f'{block("bash")}\nprintf \'%s\\n%s\\n\' "$public_key" "$signature"'
    public_key, signature = execute(key_folder, "bash", "-ec", f"body={json.dumps('X')}\n{code}")
    return {"public_key": public_key, "of_x": signature}


def block(language: str) -> str:
    found = re.search(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", TEXT)
    assert found
    return "\n".join(line.removeprefix("    ") for line in found[1].splitlines())


def execute(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def assert_signature_works(server: Server, key: dict[str, str], sign: Any) -> None:
    """Asserts that the signature closes a session with that key, and that another signature does not."""
    with server.client() as http:
        gsid = http.post(f"{BASE}/getGsid", json={"public_key": key["public_key"]}).json()["gsid"]
        body = json.dumps({"gsid": gsid, "status": "Error"})
        headers = {"Request-Sign": key["of_x"], "Content-Type": "application/json"}
        assert http.post(f"{BASE}/closeGsid", content=body, headers=headers).status_code == 403
        headers["Request-Sign"] = sign(body)
        assert http.post(f"{BASE}/closeGsid", content=body, headers=headers).status_code == 200


def test_shell_example_signs(quick: Server, key: dict[str, str], key_folder: Path) -> None:
    line = next(line for line in block("bash").splitlines() if line.startswith("signature="))

    def sign(body: str) -> str:
        return execute(key_folder, "bash", "-ec", f"body='{body}'\n{line}\necho $signature")[0]

    assert_signature_works(quick, key, sign)


def test_python_example_signs(
    quick: Server, key: dict[str, str], key_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(key_folder)

    def sign(body: str) -> str:
        names: dict[str, Any] = {"body": body.encode()}
        exec(block("python"), names)
        assert names["public_key"] == key["public_key"]
        return str(names["signature"])

    assert_signature_works(quick, key, sign)


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed: apt-get install nodejs")
def test_node_example_signs(quick: Server, key: dict[str, str], key_folder: Path) -> None:
    def sign(body: str) -> str:
        code = f"const body = {json.dumps(body)};\n{block('javascript')}\nconsole.log(publicKey + '\\n' + signature)"
        public_key, signature = execute(key_folder, "node", "-e", code)
        assert public_key == key["public_key"]
        return signature

    assert_signature_works(quick, key, sign)


@pytest.mark.skipif(not shutil.which("php"), reason="PHP is not installed: apt-get install php-cli")
def test_php_example_signs(quick: Server, key: dict[str, str], key_folder: Path) -> None:
    """The PHP example sends the public key as base64 of PEM."""

    def sign(body: str) -> str:
        code = f'$body = {json.dumps(body)};\n{block("php")}\necho "$public_key\\n$signature\\n";'
        public_key, signature = execute(key_folder, "php", "-r", code.replace("\\/", "/"))
        with quick.client() as http:
            assert http.post(f"{BASE}/getGsid", json={"public_key": public_key}).status_code == 200
        return signature

    assert_signature_works(quick, key, sign)
