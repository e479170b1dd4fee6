"""The metrics of the domain: each of them changes when what it counts happens, on whichever worker."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sso.telemetry.counters import DomainCounter
from tests.kit.browser import each_worker, fresh_browser, new_user
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, press_continue
from tests.kit.oauth import close_all, new_browser, new_site
from tests.kit.ports import free_port
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until
from tests.perm.endpoints.conftest import FACTOR

LOGIN = "/proxy/api/login"
Values = dict[tuple[str, tuple[str, ...]], float]
Growth = dict[tuple[str, ...], int]  # by the values of the labels


class MeteredServer:
    def __init__(self, server: Server, bind: str) -> None:
        self.server = server
        self._url = f"http://{bind}/metrics"

    def values(self, name: str = "sso_") -> Values:
        """The metrics whose names begin so, by name and values of the labels, as Prometheus reads them."""
        lines = httpx.get(self._url, timeout=60).text.splitlines()
        text = "\n".join(line for line in lines if line.startswith((name, f"# HELP {name}", f"# TYPE {name}")))
        families = text_string_to_metric_families(f"{text}\n")
        samples = [sample for family in families for sample in family.samples]
        return {(sample.name, tuple(sample.labels.values())): sample.value for sample in samples}

    def value(self, name: str, *labels: str) -> float:
        return self.values(name).get((name, labels), 0)

    @contextmanager
    def counts(self, name: str, expected: Growth) -> Iterator[None]:
        """What happens inside must make the counter grow by exactly these numbers. Other labels are not compared."""
        self._await_earlier_counts()
        before = self.values(name)
        yield

        def grown() -> dict[tuple[str, ...], float]:
            values = self.values(name)
            return {labels: values.get((name, labels), 0) - before.get((name, labels), 0) for labels in expected}

        assert until(lambda: grown() == expected), grown()

    def _await_earlier_counts(self) -> None:
        """Waits until each worker has told what it counted so far. It tells all of its counts together."""
        marker = "sso_logins_total", "token", "wrong_credentials"
        with each_worker(self.server) as workers:
            before = self.value(*marker)
            for worker in workers:
                assert worker.post(LOGIN, json={"token": "x"}).status_code == 401
            assert until(lambda: self.value(*marker) >= before + len(workers))

    def post(self, path: str, headers: dict[str, str] | None = None, **body: object) -> httpx.Response:
        """Sends a request with a connection of its own, which any worker may accept."""
        with self.server.client() as client:
            return client.post(path, json=body, headers=headers)

    def log_in(self, login: str, password: str = PASSWORD, **fields: object) -> httpx.Response:
        return self.post(LOGIN, None, login=login, password=password, **fields)


@pytest.fixture(scope="module")
def metered(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeteredServer]:
    bind = f"127.0.0.1:{free_port()}"
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_METRICS_BIND": bind}
    settings |= {"SSO_RATE_GETGSID": "1", "SSO_RATE_LOGIN": "0"}
    with running(tmp_path_factory.mktemp("metered"), **settings) as server:
        yield MeteredServer(server, bind)
    close_all()


def test_counters_are_shown_before_they_are_counted(metered: MeteredServer) -> None:
    expected = {
        (f"sso_{counter.name}_total", labels) for counter in DomainCounter.registered for labels in counter.begins_with
    }
    assert expected
    assert until(lambda: expected <= metered.values().keys())


def test_logins_are_counted_by_method_and_result(metered: MeteredServer) -> None:
    login, with_code, stranger = (new_user(metered.server, email_2fa=value) for value in (False, True, False))
    expected: Growth = {
        ("password", "success"): 6,
        ("password", "wrong_credentials"): 5,
        ("password", "throttled"): 1,
        ("password", "code_required"): 2,
        ("code", "wrong_credentials"): 1,
        ("token", "success"): 1,
        ("token", "wrong_credentials"): 1,
    }
    with metered.counts("sso_throttled_requests_total", {("login",): 1}), metered.counts("sso_logins_total", expected):
        tokens = [metered.log_in(login).json()["token"] for _ in range(6)]
        assert metered.post(LOGIN, token=tokens[0]).status_code == 200
        assert metered.post(LOGIN, token="x").status_code == 401
        assert [metered.log_in(stranger, "wrong").status_code for _ in range(6)] == [401] * 5 + [429]
        assert metered.log_in(with_code).status_code == 401
        assert metered.log_in(with_code, otp="000000").status_code == 401


def test_tokens_are_counted_by_grant(metered: MeteredServer) -> None:
    site, browser = new_site(metered.server), new_browser(metered.server).sign_in()
    fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": 1}
    secret = "secret of the service"
    metered.server.apply({"clients": [{"client_id": "svc", "client_secret": secret, **fields}]})
    expected: Growth = {
        (grant,): 1 for grant in ("authorization_code", "refresh_token", "client_credentials", "exchange")
    }
    with metered.counts("sso_tokens_issued_total", expected):
        tokens = site.tokens(browser)
        assert site.refresh(tokens["refresh_token"]).status_code == 200
        form = {"grant_type": "client_credentials", "client_id": "svc", "client_secret": secret}
        assert site.http.post("/proxy/oauth/token", data=form).status_code == 200
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert site.http.post("/proxy/oauth/exchangeToken", headers=bearer).status_code == 200
        assert site.redeem("unknown code").status_code == 400
        assert site.redeem("x", grant_type="unknown").status_code == 400


def test_permission_checks_are_counted_by_kind(metered: MeteredServer) -> None:
    jwt = metered.log_in(new_user(metered.server), factor=FACTOR).json()["jwt"]
    headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
    with metered.counts("sso_permission_checks_total", {("list_short",): 3, ("roles",): 1, ("caller",): 4}):
        for kind in ("list_short", "list_short", "list_short", "roles"):
            body = {"action": "get", "application_id": 1, "data": {"type": kind}}
            assert metered.post("/api/permissions/meta/data", headers, **body).status_code == 200


def test_throttled_requests_are_counted_by_limit(metered: MeteredServer) -> None:
    with Game(metered.server) as game, metered.counts("sso_throttled_requests_total", {("getgsid",): 2}):
        game.register()
        assert [game.get_gsid().status_code for _ in range(2)] == [429, 429]


def test_logins_of_games_are_counted(metered: MeteredServer) -> None:
    with Game(metered.server) as one, Game(metered.server) as other:
        allowed, denied = one.register(), other.register()
        with (
            fresh_browser(metered.server, new_user(metered.server)) as browser,
            metered.counts("sso_logins_total", {("game", "success"): 1, ("game", "denied"): 1}),
        ):
            press_continue(browser, allowed)
            assert allowed.poll().json()["status"] == "OK"
            browser.follow(browser.get(denied.page))
            assert browser.submit(f"{denied.decision}/deny").status_code == 200


def test_mails_and_their_queue_and_failures_of_tasks_are_measured(metered: MeteredServer) -> None:
    one, other = (new_user(metered.server, email_2fa=True) for _ in range(2))
    with metered.counts("sso_deliveries_total", {("mail", "delivered"): 1}):
        assert metered.log_in(one).status_code == 401
    assert until(lambda: metered.value("sso_mail_queue") == 0)
    folder = metered.server.folder / "data" / "mail"
    shutil.rmtree(folder)
    folder.write_text("not a directory")
    with (
        metered.counts("sso_deliveries_total", {("mail", "retry"): 1}),
        metered.counts("sso_background_task_failures_total", {("mail",): 1}),
    ):
        assert metered.log_in(other).status_code == 401
    assert until(lambda: metered.value("sso_mail_queue") == 1)
    assert until(lambda: metered.value("sso_mail_queue_oldest_seconds") > 0)


def test_database_pool_is_measured(metered: MeteredServer) -> None:
    values = metered.values()
    pool = {name: values[f"sso_database_pool_{name}", ()] for name in ("size", "busy")}
    assert pool["size"] == 2 * 8  # two workers with SSO_DATABASE_POOL each
    assert 0 <= pool["busy"] <= pool["size"]
    # Many tasks of a worker that has just started read from the database first.
    assert until(lambda: metered.values()["sso_database_pool_waiting", ()] == 0)
