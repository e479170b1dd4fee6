"""scripts/run: the service and the demo site, started by one command."""

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

import httpx
import pytest

from scripts import demo_installation
from scripts.demo_installation import NotTheDemo, check_installation, claim_data_directory, delete_data_directory
from scripts.run_demo import links, listen
from sso.db.embedded import join
from tests.faults import open_folder
from tests.kit.browser import Forms
from tests.kit.long_tests import takes_long
from tests.kit.ports import free_port
from tests.kit.prepared_data import join_prepared
from tests.kit.server import QUICK, clean_environment, until

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "scripts.run_demo")  # what scripts/run starts when the packages are installed


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    with open_folder() as folder:
        environment = clean_environment(
            **QUICK,
            SSO_DATA_DIR=str(folder / "data"),
            SSO_BIND=f"127.0.0.1:{free_port()}",
            SSO_LOG_LEVEL="error",
            DEMO_SITE_PORT=str(free_port()),
        )
        environment.pop("SSO_SINGLE_NODE", None)
        yield environment


@pytest.fixture
def prepared(environment: dict[str, str]) -> dict[str, str]:
    """The demo has run before: its data directory has a mark and a database."""
    data_dir = Path(environment["SSO_DATA_DIR"])
    claim_data_directory(data_dir)
    join_prepared(data_dir).close()
    return environment


@contextmanager
def started(environment: dict[str, str]) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


def check_mails(service: str) -> None:
    """A player asks for a new password, and opens the link of the mail on the page with the demo's mails."""
    with httpx.Client(base_url=service, timeout=60, follow_redirects=True) as browser:
        assert "There is no mail yet." in browser.get("/demo/mail").text
        form = Forms(browser.get("/forgot").text).by_action["/forgot"][0]
        answer = browser.post("/forgot", data={**form, "login": "player@example.com"}, headers={"Origin": service})
        assert answer.status_code < 400, answer.text
        mails = until(lambda: re.findall(r'href="(/demo/mail/[0-9a-f]{16})"', browser.get("/demo/mail").text))
        mail = html.unescape(browser.get(mails[0]).text)
        link = re.search(rf'href="({re.escape(service)}/reset[^"]+)"', mail)
        assert link is not None, mail
        assert "New password" in browser.get(link[1]).text
        assert browser.get("/demo/mail/0000000000000000").status_code == 404


def check_playground(service: str) -> None:
    """Anybody tries permissions in the demo: an example answers, a person is added, and the document is downloaded."""
    with httpx.Client(base_url=service, timeout=60) as browser:
        page = browser.get("/docs/playground").text
        assert "leader@example.com</bdi> may <code>clan.disband" in page
        document = html.unescape(re.findall(r"(?s)<textarea[^>]*>(.*?)</textarea>", page)[0])
        form = {"document": document, "application_id": "10", "rule": "clan.kick", "user": "zoe@example.com"}
        added = browser.post("/docs/playground", data=form | {"add": "person", "new_login": "zoe@example.com"})
        assert "zoe@example.com</bdi> may not <code>clan.kick" in added.text
        refused = browser.post("/docs/playground", data=form)
        assert (refused.status_code, "There is no user zoe@example.com" in refused.text) == (422, True)
        file = browser.post("/docs/playground/file", data=form)
        assert file.headers["Content-Disposition"] == 'attachment; filename="playground.json"'
        assert json.loads(file.text) == json.loads(document)


def check_refusal(service: str) -> None:
    """In the demo, a game with a wrong gsid learns the reason, which others must ask the operator for."""
    answer = httpx.post(f"{service}/proxy/api/gameSession/getGsidResult", json={"gsid": "f" * 32}, timeout=60)
    assert answer.status_code == 403
    assert re.fullmatch("[0-9a-f]{16}", answer.json()["error"])
    assert answer.json()["reason"] == "no such session"


@pytest.mark.parametrize("stop", [pytest.param("SIGTERM", marks=takes_long), "Ctrl-C"])
def test_links_are_printed_when_both_answer_and_both_stop_together(prepared: dict[str, str], stop: str) -> None:
    environment = prepared
    _, _, port = environment["SSO_BIND"].partition(":")
    service, site = f"http://localhost:{port}", f"http://127.0.0.1:{environment['DEMO_SITE_PORT']}"
    with started(environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip() for _ in range(16)]
        assert lines == [
            "created 9, changed 3, unchanged 1",
            f"sso is ready at {service} (1 worker, data directory {environment['SSO_DATA_DIR']})",
            "",
            f"  Admin console  {service}/console",
            f"  Account page   {service}/account",
            f"  New account    {service}/register",
            f"  Mails          {service}/demo/mail",
            f"  Documentation  {service}/docs/",
            f"  Playground     {service}/docs/playground",
            f"  Demo web site  {site}/",
            f"  Demo game      {ROOT}/scripts/sso play {service}    (in a second terminal)",
            "  Administrator  demo@example.com with the password demo-password",
            "  Player         player@example.com with the password player-password",
            f"  Test players   {service}/docs/testing.html (banned, slow, second factor, …)",
            "  Stop           Ctrl-C",
            "  Start afresh   scripts/run --reset",
        ]
        assert answers(f"{service}/readyz")
        assert answers(f"{service}/register")
        check_mails(service)
        check_playground(service)
        check_refusal(service)
        banned = {"login": "banned@player.test", "password": "test-player-password"}
        assert httpx.post(f"{service}/proxy/api/login", json=banned, timeout=60).json()["error"] == "banned"
        assert f"{service}/proxy/oauth/authorize" in httpx.get(f"{site}/sign-in", timeout=60).headers["Location"]
        if stop == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)  # the terminal sends it to all processes of the group
        else:
            process.terminate()
        assert process.wait(60) == 0
        assert process.stdout.read() == ""  # the end of the output: the demo site has ended as well
    assert not answers(site)
    assert not answers(f"{service}/readyz")


def test_reset_deletes_the_data_of_the_demo_and_of_nothing_else(prepared: dict[str, str]) -> None:
    data_dir = Path(prepared["SSO_DATA_DIR"])
    with (
        closing(join(data_dir)),
        mock.patch.object(demo_installation, "STOPPING_S", 0),
        pytest.raises(NotTheDemo, match="is running: stop the service"),
    ):
        delete_data_directory(data_dir)
    delete_data_directory(check_installation(prepared))
    assert not data_dir.exists()
    (data_dir / "postgres").mkdir(parents=True)
    with pytest.raises(NotTheDemo, match="was not created by scripts/run"):
        check_installation(prepared)


def refusal(environment: dict[str, str]) -> str:
    done = subprocess.run(
        COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )  # returns when all processes have closed the output
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_taken_port_of_the_demo_site_is_reported_and_nothing_starts(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", int(environment["DEMO_SITE_PORT"]))):
        assert refusal(environment) == (
            f"scripts/run: cannot listen on 127.0.0.1:{environment['DEMO_SITE_PORT']}: the address is already in use; "
            "set DEMO_SITE_PORT to another port\n"
        )
    assert not Path(environment["SSO_DATA_DIR"]).exists()


@takes_long
def test_taken_address_of_the_service_is_reported_and_the_demo_site_ends(environment: dict[str, str]) -> None:
    host, _, port = environment["SSO_BIND"].partition(":")
    with socket.create_server((host, int(port))):
        assert refusal(environment) == (
            f"sso: cannot listen on {environment['SSO_BIND']}: the address is already in use; "
            "set SSO_BIND to another address\n"
        )
    socket.create_server(("127.0.0.1", int(environment["DEMO_SITE_PORT"]))).close()


def test_demo_account_is_not_created_in_another_installation(environment: dict[str, str]) -> None:
    """Everybody knows its password, and it is an administrator."""
    data_dir = Path(environment["SSO_DATA_DIR"])
    (data_dir / "postgres").mkdir(parents=True)
    assert f"scripts/run: SSO_DATA_DIR: {data_dir} was not created by scripts/run" in refusal(environment)
    assert list(data_dir.iterdir()) == [data_dir / "postgres"]


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"SSO_DATABASE_URL": "postgresql://sso@db/sso"}, r"^SSO_DATABASE_URL: "),
        ({"SSO_CONFIG": "/etc/sso/sso.toml"}, r"^SSO_CONFIG: "),
        ({"SSO_SECRET_KEY": "k"}, r"^SSO_SECRET_KEY: "),
        ({"SSO_BUS_URL": "nats://bus"}, r"^SSO_BUS_URL: "),
        ({"SSO_BIND": "0.0.0.0:8000"}, r"^SSO_BIND: 0\.0\.0\.0:8000 .* password of the demo is public"),
        ({"SSO_BIND": "127.0.0.1:8000,[::]:8000"}, r"^SSO_BIND: \[::\]:8000 "),
        ({"SSO_BIND": "sso.example.com:8000"}, r"^SSO_BIND: sso\.example\.com:8000 "),
        ({"SSO_METRICS_BIND": "192.0.2.1:9100"}, r"^SSO_METRICS_BIND: "),
        ({"SSO_BASE_URL": "https://sso.example.com"}, r"^SSO_BASE_URL: .* password of the demo is public"),
        ({"SSO_BIND": "nonsense"}, r"^SSO_BIND: .*expected host:port"),
    ],
)
def test_settings_of_another_installation_are_refused(tmp_path: Path, variables: dict[str, str], reason: str) -> None:
    with pytest.raises(NotTheDemo, match=reason):
        check_installation({"SSO_DATA_DIR": str(tmp_path / "data")} | variables)
    assert not (tmp_path / "data").exists()


def test_data_directory_of_the_demo_has_a_mark(tmp_path: Path) -> None:
    variables = {"SSO_DATA_DIR": str(tmp_path / "data"), "SSO_BIND": "unix:/run/sso.sock,[::1]:8000,localhost:8001"}
    data_dir = check_installation(variables)
    claim_data_directory(data_dir)
    (data_dir / "secret.key").touch()
    assert check_installation(variables) == data_dir
    (data_dir / "demo").unlink()
    with pytest.raises(NotTheDemo, match=r"was not created by scripts/run.* run `echo '.+' > .*/data/demo`") as refused:
        check_installation(variables)
    subprocess.run(str(refused.value).split("`")[1], shell=True, check=True)
    assert check_installation(variables) == data_dir


def empty_mark(data_dir: Path) -> None:
    (data_dir / "demo").write_text("")


def linked_mark(data_dir: Path) -> None:
    (data_dir / "demo").rename(data_dir.parent / "elsewhere")
    (data_dir / "demo").symlink_to(data_dir.parent / "elsewhere")


def mark_of_another_account(data_dir: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another account: run the tests as root")
    os.chown(data_dir / "demo", 12345, 12345)


def mark_that_is_a_pipe(data_dir: Path) -> None:
    (data_dir / "demo").unlink()
    os.mkfifo(data_dir / "demo")


def pointer_to_another_database(data_dir: Path) -> None:
    other = data_dir.parent / "other"
    other.mkdir()
    (other / "belongs-to").write_text("/srv/sso\n")
    (data_dir / "postgres.location").write_text(f"{other}\n")


def linked_database(data_dir: Path) -> None:
    (data_dir / "postgres").symlink_to(data_dir.parent)


def linked_data_of_the_database(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir()
    (data_dir / "postgres/data").symlink_to(data_dir.parent)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (empty_mark, "was not created by scripts/run"),
        (linked_mark, "/data/demo is a symbolic link.* Set SSO_DATA_DIR to a new directory"),
        (mark_of_another_account, "was not created by scripts/run under this account.* Set SSO_DATA_DIR"),
        (mark_that_is_a_pipe, "was not created by scripts/run"),
        (pointer_to_another_database, r"/data/postgres\.location names .*/other.* Set SSO_DATA_DIR to a new directory"),
        (linked_database, "/data/postgres is a symbolic link"),
        (linked_data_of_the_database, "/data/postgres/data is a symbolic link"),
    ],
)
def test_data_directory_that_leads_to_another_installation_is_refused(
    tmp_path: Path, change: Callable[[Path], None], reason: str
) -> None:
    variables = {"SSO_DATA_DIR": str(tmp_path / "data")}
    claim_data_directory(tmp_path / "data")
    change(tmp_path / "data")
    with pytest.raises(NotTheDemo, match=f"^SSO_DATA_DIR: .*{reason}"):
        check_installation(variables)


def test_database_that_root_keeps_elsewhere_belongs_to_the_demo(tmp_path: Path) -> None:
    """PostgreSQL's account cannot reach a data directory in the home directory of root."""
    claim_data_directory(data_dir := tmp_path / "data")
    pointer_to_another_database(data_dir)
    (tmp_path / "other/belongs-to").write_text(f"{data_dir}\n")
    assert check_installation({"SSO_DATA_DIR": str(data_dir)}) == data_dir


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_invalid_port_of_the_demo_site_is_reported(monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv("DEMO_SITE_PORT", port)
    with pytest.raises(SystemExit, match=r"^scripts/run: DEMO_SITE_PORT: must be a number from 1 to 65535$"):
        listen()


@takes_long
def test_links_lead_to_the_service_with_several_bind_addresses(prepared: dict[str, str], tmp_path: Path) -> None:
    environment, port = prepared, free_port()
    environment["SSO_BIND"] = f"unix:{tmp_path}/sso.sock,127.0.0.1:{port},127.0.0.2:{free_port()}"
    with started(environment) as process:
        assert process.stdout is not None
        account = next(filter(None, (re.search(r"Account page +(\S+)", line) for line in process.stdout)))
        assert account[1] == f"http://127.0.0.1:{port}/account"
        assert until(lambda: httpx.get(account[1], timeout=60).status_code == 303)
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.read()


def test_links_use_the_base_url_and_a_unix_socket_alone_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSO_BIND", "unix:/run/sso.sock")
    assert "https://sso.localhost/account" in links("https://sso.localhost", "http://127.0.0.1:8001")
    text = links("http://localhost", "http://127.0.0.1:8001")
    assert "SSO_BIND=unix:/run/sso.sock,127.0.0.1:8000" in text
    assert "http://localhost" not in text
