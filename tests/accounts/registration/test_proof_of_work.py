"""The puzzle of the registration form: signed, expiring, accepted once; browsers without JavaScript wait."""

import pytest
import trio

from sso.accounts.registration import proof_of_work
from sso.accounts.registration.challenge import build_challenge
from sso.accounts.registration.proof_of_work import EXPIRED, LIFE_S, WAIT_S, WAITED_PER_MINUTE, ProofOfWork
from sso.config import ConfigError, Settings, load
from sso.core.encryption import Keyring, MasterKey
from sso.core.language import Text
from sso.core.net import parse_address
from sso.db.database import Database
from tests.kit.browser import Forms
from tests.kit.registration import solve

ADDRESS = parse_address("192.0.2.1")
BITS = 6


@pytest.fixture
def challenge(database: Database, keyring: Keyring) -> ProofOfWork:
    return ProofOfWork(database, keyring, BITS)


async def issue(challenge: ProofOfWork, form: dict[str, str] | None = None) -> dict[str, str]:
    """Returns the fields of a new puzzle."""
    fields = Forms(f'<form method="post" action="/">{await challenge.issue(form or {})}</form>').by_action["/"]
    return fields[0]


async def solved(challenge: ProofOfWork) -> dict[str, str]:
    form = await issue(challenge)
    return form | {"solution": solve(form["puzzle"])}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, database: Database) -> list[float]:
    """The seconds by which the clock of the database is ahead."""
    ahead, now = [0.0], database.clock.now
    monkeypatch.setattr(database.clock, "now", lambda: now() + ahead[0])
    return ahead


async def test_solution_is_accepted_once(challenge: ProofOfWork) -> None:
    form = await solved(challenge)
    assert await challenge.verify(form, ADDRESS) is None
    assert await challenge.verify(form, ADDRESS) == EXPIRED


async def test_one_of_fifty_concurrent_forms_with_a_puzzle_is_accepted(challenge: ProofOfWork) -> None:
    form = await solved(challenge)
    results: list[Text | None] = []

    async def verify() -> None:
        results.append(await challenge.verify(form, ADDRESS))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(verify)
    assert results.count(None) == 1


async def test_forged_puzzles_are_refused(challenge: ProofOfWork, database: Database) -> None:
    form = await solved(challenge)
    nonce, issued, bits, mac = form["puzzle"].split(".")
    strange = ProofOfWork(database, Keyring([MasterKey.generate()]), BITS)
    for puzzle in (
        "",
        "x",
        f"{nonce}.{issued}.1.{mac}",  # an easier one
        f"{nonce}.{int(issued) + 1}.{bits}.{mac}",
        f"{nonce}.0{issued}.{bits}.{mac}",
        f"{'A' * 22}.{issued}.{bits}.{mac}",
        f"{nonce}.{issued}.{bits}.{'A' * 43}",
        f"{form['puzzle']}\n",
        (await solved(strange))["puzzle"],
    ):
        assert await challenge.verify(form | {"puzzle": puzzle}, ADDRESS) == EXPIRED, puzzle
    assert await challenge.verify(form, ADDRESS) is None


@pytest.mark.parametrize("solution", ["", "-1", "1e3", "x", "٣", "9" * 13])
async def test_wrong_solution_must_wait_like_a_browser_without_javascript(
    challenge: ProofOfWork, solution: str
) -> None:
    form = await issue(challenge) | {"solution": solution}
    problem = await challenge.verify(form, ADDRESS)
    assert problem is not None
    assert "Please wait another" in problem


async def test_browser_without_javascript_waits(challenge: ProofOfWork, clock: list[float]) -> None:
    form = await issue(challenge)
    assert await challenge.verify(form, ADDRESS) is not None
    assert (await issue(challenge, form))["puzzle"] == form["puzzle"]  # the time counts from the first form
    clock[0] = WAIT_S + 1
    assert await challenge.verify(form, ADDRESS) is None
    assert await challenge.verify(form, ADDRESS) == EXPIRED


async def test_waiting_browsers_of_a_network_have_a_lower_limit(challenge: ProofOfWork, clock: list[float]) -> None:
    forms = [await issue(challenge) for _ in range(WAITED_PER_MINUTE + 1)]
    clock[0] = WAIT_S + 1
    outcomes = [await challenge.verify(form, ADDRESS) for form in forms]
    assert outcomes[:-1] == [None] * WAITED_PER_MINUTE
    assert outcomes[-1] is not None
    assert await challenge.verify(forms[-1], parse_address("198.51.100.1")) is None
    assert await challenge.verify(await solved(challenge), ADDRESS) is None


async def test_puzzle_expires(challenge: ProofOfWork, clock: list[float]) -> None:
    form = await solved(challenge)
    clock[0] = LIFE_S + 1
    assert await challenge.verify(form, ADDRESS) == EXPIRED
    assert (await issue(challenge, form))["puzzle"] != form["puzzle"]


async def test_solved_puzzle_of_a_rejected_form_is_shown_again(challenge: ProofOfWork) -> None:
    form = await solved(challenge)
    assert await issue(challenge, form) == {"puzzle": form["puzzle"], "solution": form["solution"]}


async def test_operators_own_challenge_is_used(database: Database, keyring: Keyring) -> None:
    settings = load(None, {"SSO_REGISTRATION_CHALLENGE": f"{__name__}:always_refuses"})
    problem = await build_challenge(settings, database, keyring).verify({}, ADDRESS)
    assert problem == "no"


class Refusal(proof_of_work.ProofOfWork):
    def __init__(self) -> None:
        """Needs no database."""

    async def verify(self, *_: object) -> Text | None:
        return Text("no")


def always_refuses(settings: Settings) -> Refusal:
    assert settings.registration == "closed"
    return Refusal()


@pytest.mark.parametrize("name", ["no_such_package:name", "sso.config:no_such_name", "sso.config:PREFIX"])
async def test_challenge_that_cannot_be_imported_is_an_error(database: Database, keyring: Keyring, name: str) -> None:
    with pytest.raises(ConfigError, match="SSO_REGISTRATION_CHALLENGE: "):
        build_challenge(load(None, {"SSO_REGISTRATION_CHALLENGE": name}), database, keyring)


@pytest.mark.parametrize("value", ["on", "os", "os.system", ":x", "a:b:c"])
def test_challenge_setting_names_what_is_expected(value: str) -> None:
    with pytest.raises(ConfigError, match="must be off, proof-of-work, or a function"):
        load(None, {"SSO_REGISTRATION_CHALLENGE": value})
