"""State machines: random calls to a real server, whose answers a small model of the state predicts.

A failure shows the shortest sequence of calls as a program that can be run again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import httpx
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.kit import postgres
from tests.kit.oauth import close_all
from tests.kit.server import NO_LIMITS, QUICK, Server, running

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0"))
SETTINGS = QUICK | NO_LIMITS | {"SSO_WORKERS": "2", "SSO_GSID_HOLD_S": "1"}
EXAMPLES = 4  # of a round
USUAL_EXAMPLES = 2  # of the usual run, which are the same each time
STEPS = 20 if ROUNDS else 10
CLIENT_ID = "model-administrator"
SECRET = "a secret of the administrator of models"


class ServiceMachine(RuleBasedStateMachine):
    """A machine that speaks to a server."""

    server: ClassVar[Server]


def check_model(machine: type[ServiceMachine], server: Server, examples: int = EXAMPLES * ROUNDS) -> None:
    """Runs the machine many times. An error has the shortest failing sequence as a note."""
    chosen = settings(
        max_examples=examples or USUAL_EXAMPLES,
        stateful_step_count=STEPS,
        derandomize=not examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),  # an explanation would trace every line
    )
    try:
        run_state_machine_as_test(_with_server(machine, server), settings=chosen)
    except Exception as error:
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        error.add_note(replay_program(machine, "\n".join(getattr(first, "__notes__", []))))
        raise


def replay_program(machine: type[ServiceMachine], report: str) -> str:
    """Returns a program that makes the calls of a failure again."""
    calls = [line.strip() for line in report.splitlines() if "state." in line and "state.teardown()" not in line]
    lines = [
        "# The shortest sequence that fails. To run it again, from the checkout: .venv/bin/python - <<'END'",
        f"from {__name__} import replay",
        f"from {machine.__module__} import {machine.__name__}",
        f"with replay({machine.__name__}) as state:",
        *(f"    {call}" for call in calls),
        "END",
    ]
    return "\n".join(lines)


@contextmanager
def replay(machine: type[ServiceMachine]) -> Iterator[Any]:
    """Yields a machine with a server of its own."""
    with own_server() as server:
        state = _with_server(machine, server)()
        yield state
        state.teardown()


@contextmanager
def own_server() -> Iterator[Server]:
    """Runs a server with two workers, without rate limits, that holds a poll for a second."""
    with (
        TemporaryDirectory() as folder,
        postgres.running() as database,
        running(Path(folder), **SETTINGS, SSO_DATABASE_URL=database.fresh()) as server,
    ):
        yield server
        close_all()


def _with_server(machine: type[ServiceMachine], server: Server) -> type[ServiceMachine]:
    return type(machine.__name__, (machine,), {"server": server})


def administrator(server: Server) -> dict[str, str]:
    """Returns the headers of a service client that is root."""
    fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": 1}
    server.apply({"clients": [{"client_id": CLIENT_ID, "client_secret": SECRET, **fields}]})
    form = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": SECRET}
    answer = httpx.post(f"{server.base_url}/proxy/oauth/token", data=form)
    assert answer.status_code == 200, answer.text
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}
