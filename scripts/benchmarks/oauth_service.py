"""This service as a target of the OAuth benchmarks."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.benchmarks.oauth_measure import Subject
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.report import process_tree
from sso.db.standalone import fetch_value
from tests.kit.server import SSO, Server, running

USERS = 64
LOGINS = [f"u{number}@example.com" for number in range(USERS)]
PASSWORD = "password-of-the-benchmark"
REDIRECT_URI = "http://127.0.0.1:9999/cb"
CLIENT = {
    "client_id": "bench",
    "client_secret": "bench-secret-0123456789abcdef0123456789",
    "name": "Benchmark",
    "profile": "oidc",
    "redirect_hosts": ["127.0.0.1"],
    "redirect_uris": [REDIRECT_URI],
    "consent": False,
    "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
    "application_id": 500,
    "resource_server": True,
}
APPLICATION = {"application_id": 500, "name": "Benchmark"}
# A hash that takes as long as the 1,000 rounds of PBKDF2 of the peers, 0.4 ms. All load comes from one address, so
# there are no rate limits and no access log.
HASH = {"SSO_ARGON2_TIME": "1", "SSO_ARGON2_KIB": "512"}
NO_LIMITS = {
    "SSO_CONNECTIONS_PER_ADDRESS": "0",
    "SSO_RATE_LOGIN": "0",
    "SSO_RATE_ACCOUNT": "0",
    "SSO_RATE_AUTHORIZE": "0",
}
# Each login of the benchmark comes from a new browser, which would send a mail to its user. Peers send none.
NO_NOTICES = f"""
    UPDATE users SET sign_in_notices = false, first_sign_in = now()
    WHERE login_key = ANY (CAST('{{{",".join(LOGINS)}}}' AS text[]))
"""
SETTINGS = HASH | NO_LIMITS | {"SSO_LOG_LEVEL": "warning"}


@contextmanager
def running_service(
    dsn: str, program: Sequence[str] = SSO, algorithm: str = "RS256", **settings: str
) -> Iterator[tuple[Server, Target]]:
    """Starts the program itself: one forked from the tests, with an empty ``program``, has the memory of the tests."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), program, **{**SETTINGS, "SSO_DATABASE_URL": dsn, **settings}) as server,
    ):
        server.apply(benchmark_state(algorithm))
        fetch_value(dsn, NO_NOTICES)
        yield server, service_target(server)


def benchmark_state(algorithm: str = "RS256") -> dict[str, Any]:
    """Returns the document with the users, the client and the application. The algorithm signs ID tokens."""
    people: list[dict[str, Any]] = [
        {"login": login, "password": PASSWORD, "nick": f"nick{number}"} for number, login in enumerate(LOGINS)
    ]
    return {
        "users": people,
        "clients": [CLIENT | {"id_alg": "" if algorithm == "RS256" else algorithm}],
        "applications": [APPLICATION],
    }


def service_target(server: Server) -> Target:
    return Target(
        base_url=server.base_url,
        jwks="/proxy/oauth/keys",
        userinfo="/proxy/oauth/userinfo",
        token="/proxy/oauth/token",
        authorize="/proxy/oauth/authorize",
        introspect="/proxy/oauth/introspect",
        client_credentials=True,
        client_id="bench",
        client_secret=CLIENT["client_secret"],  # type: ignore[arg-type]
        redirect_uri=REDIRECT_URI,
        users=LOGINS,
        password=PASSWORD,
        authorize_params={"response_mode": "query"},
    )


@contextmanager
def service_subject(
    dsn: str, database_pid: Callable[[], int], workers: int = 1, algorithm: str = "RS256", **settings: str
) -> Iterator[Subject]:
    """Yields the running service, including its supervisor, as a subject of measurements."""
    with running_service(dsn, algorithm=algorithm, SSO_WORKERS=str(workers), **settings) as (server, target):
        assert server.process is not None
        supervisor = server.process.pid
        yield Subject(target, lambda: process_tree(supervisor), lambda: process_tree(database_pid()))
