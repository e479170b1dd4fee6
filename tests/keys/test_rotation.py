"""Rotation without a pause: published before it signs, the old one stays, no kid that is not in the set."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jwt as pyjwt
import orjson
import pytest
import trio

from sso.core.jwt import InvalidToken, Signer, Verifier
from sso.keys import store
from sso.keys.keyset import KeySet
from sso.keys.store import LastKey
from sso.services import Services
from tests.kit.builders import PASSWORD
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

SETS = ("/proxy/oauth/keys", "/api/permissions/keys")
LOGIN = "/proxy/api/login"


def published(keys: KeySet) -> list[str]:
    return [key["kid"] for key in orjson.loads(keys.jwks)["keys"]]


def sign(services: Services) -> str:
    return services.keys.signer().sign({"typ": "t", "iss": "i", "iat": 1000, "exp": 2000})


def verifies(services: Services, token: str) -> bool:
    try:
        Verifier("t", issuer="i").verify(token, services.keys.find, 1500)
    except InvalidToken:
        return False
    return True


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> float:
    seconds = 0.3
    monkeypatch.setattr(store, "LEAD_S", seconds)
    return seconds


def test_a_new_key_signs_within_15_seconds() -> None:
    assert store.LEAD_S == 15


def signer_after(keys: KeySet, seconds: float, algorithm: str | None = None) -> Signer:
    """Who signs when so much time has passed; nothing is awaited meanwhile."""
    later = trio.current_time() + seconds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio, "current_time", lambda: later)
        return keys.signer(algorithm) if algorithm else keys.signer()


async def test_a_new_key_is_published_before_it_signs(services: Services) -> None:
    old = services.keys.signer().kid
    new = await services.key_store.rotate("EdDSA", 3600)
    await services.keys.load()
    assert published(services.keys) == [old, new]
    assert services.keys.signer().kid == old
    later = signer_after(services.keys, store.LEAD_S + 0.1)  # without being told, or reading anything
    assert (later.kid, later.algorithm) == (new, "EdDSA")


async def test_the_old_key_stays_published_and_what_it_signed_verifies(services: Services, lead: float) -> None:
    token = sign(services)
    await services.key_store.rotate("ES256", 3600)
    await trio.sleep(lead + 0.1)
    await services.keys.load()
    assert len(published(services.keys)) == 2
    assert verifies(services, token)
    assert verifies(services, sign(services))


async def test_the_old_key_stays_until_its_tokens_have_expired_and_30_days_more(services: Services) -> None:
    old = services.keys.signer().kid
    await services.key_store.rotate("ES256", 5000)
    (key,) = [key for key in await services.key_store.all() if key.kid == old]
    assert key.published_until is not None
    left = key.published_until.timestamp() - time.time()
    assert left == pytest.approx(15 + 5000 + 30 * 86400, abs=60)


async def test_keys_rotated_twice_in_a_row_take_turns(services: Services, lead: float) -> None:
    first = services.keys.signer().kid
    second = await services.key_store.rotate("ES256", 3600)
    third = await services.key_store.rotate("ES256", 3600)
    await services.keys.load()
    assert published(services.keys) == [first, second, third]
    await trio.sleep(lead + 0.1)
    assert services.keys.signer().kid == third
    # Only the newest is without an end: rotating again does not lengthen the life of the older ones.
    assert [key.published_until is None for key in await services.key_store.all()] == [False, False, True]


async def test_what_a_retired_key_signed_is_refused(services: Services, lead: float) -> None:
    old, token = services.keys.signer().kid, sign(services)
    new = await services.key_store.rotate("ES256", 3600)
    await trio.sleep(lead + 0.1)
    assert await services.key_store.retire(old)
    await services.keys.load()
    assert published(services.keys) == [new]
    assert not verifies(services, token)
    assert verifies(services, sign(services))


async def test_the_last_key_cannot_be_retired(services: Services) -> None:
    only = services.keys.signer().kid
    with pytest.raises(LastKey):
        await services.key_store.retire(only)
    new = await services.key_store.rotate("ES256", 3600)
    with pytest.raises(LastKey):  # the older one ends some day
        await services.key_store.retire(new)
    assert await services.key_store.retire(only)
    with pytest.raises(LastKey):
        await services.key_store.retire(new)


async def test_a_side_key_signs_only_where_its_algorithm_is_asked_for(services: Services) -> None:
    await services.key_store.ensure_signing_keys("ES256", sides=("ES256", "EdDSA"))
    await services.keys.load()
    main = services.keys.signer()
    edwards, elliptic = services.keys.signer("EdDSA"), services.keys.signer("ES256")
    assert (main.algorithm, edwards.algorithm, elliptic.algorithm) == ("ES256", "EdDSA", "ES256")
    assert len({main.kid, edwards.kid, elliptic.kid}) == 3
    assert services.keys.signer("RS256") == main  # there is none beside it


async def test_rotating_a_side_key_leaves_the_others_as_they_are(services: Services) -> None:
    await services.key_store.ensure_signing_keys("ES256", sides=("EdDSA",))
    await services.keys.load()
    main, side = services.keys.signer().kid, services.keys.signer("EdDSA").kid
    new = await services.key_store.rotate("EdDSA", 3600, side=True)
    await services.keys.load()
    assert services.keys.signer("EdDSA").kid == side
    after_s = store.LEAD_S + 0.1
    assert signer_after(services.keys, after_s).kid == main
    assert signer_after(services.keys, after_s, "EdDSA").kid == new
    with pytest.raises(LastKey):
        await services.key_store.retire(new)
    assert await services.key_store.retire(side)


async def test_retiring_a_key_that_is_not_in_use_changes_nothing(services: Services) -> None:
    old = services.keys.signer().kid
    await services.key_store.rotate("ES256", 3600)
    assert not await services.key_store.retire("unknown")
    assert await services.key_store.retire(old)
    assert not await services.key_store.retire(old)


async def test_signing_goes_on_when_the_old_key_is_retired_before_the_new_one_was_to_sign(services: Services) -> None:
    """A leaked key is taken out at once, not after the lead of the next one."""
    leaked = services.keys.signer().kid
    new = await services.key_store.rotate("ES256", 3600)
    assert await services.key_store.retire(leaked)
    await services.keys.load()
    assert services.keys.signer().kid == new
    assert verifies(services, sign(services))


@pytest.fixture(scope="module")
def rotating(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers of this file's own."""
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0"}
    folder: Path = tmp_path_factory.mktemp("rotating")
    with running(folder, **settings) as server:
        server.apply({"users": [{"login": "ann@example.com", "password": PASSWORD}]})
        yield server


def sets(server: Server, times: int = 12) -> set[str]:
    """What many connections get at both addresses, so that both workers are among those who answer."""
    found = set()
    for _ in range(times):
        with server.client(verify=False) as client:
            for path in SETS:
                answer = client.get(path)
                assert answer.status_code == 200
                found.add(answer.text)
    return found


def kids(text: str) -> set[str]:
    return {key["kid"] for key in orjson.loads(text)["keys"]}


def main(text: str) -> set[str]:
    """Those that sign what no other algorithm is asked for."""
    return {key["kid"] for key in orjson.loads(text)["keys"] if key["alg"] == "RS256"}


def test_both_addresses_publish_the_same_set(rotating: Server) -> None:
    (text,) = sets(rotating)
    by_algorithm = {jwk["alg"]: set(jwk) - {"kid", "use", "alg", "kty"} for jwk in orjson.loads(text)["keys"]}
    assert by_algorithm == {"RS256": {"n", "e"}, "ES256": {"crv", "x", "y"}, "EdDSA": {"crv", "x"}}
    with rotating.client(verify=False) as client:
        for path in SETS:
            answer = client.get(path)
            assert answer.headers["Content-Type"] == "application/json"
            # Whoever keeps it for so long, and then a worker that looks again every 5 s, is in time for the new key.
            assert answer.headers["Cache-Control"] == "public, max-age=10"


def test_a_rotation_is_seen_by_both_workers_and_no_token_has_a_kid_that_is_not_in_the_set(rotating: Server) -> None:
    (before,) = sets(rotating)
    seen: list[tuple[str, set[str]]] = []
    stop = threading.Event()

    def log_in_all_the_time() -> None:
        while not stop.is_set():
            with rotating.client(verify=False) as client:
                fields = {"login": "ann@example.com", "password": PASSWORD, "factor": "d"}
                token = client.post(LOGIN, json=fields).json()["jwt"]
            with rotating.client(verify=False) as other:  # perhaps the other worker
                seen.append((pyjwt.get_unverified_header(token)["kid"], kids(other.get(SETS[len(seen) % 2]).text)))
            time.sleep(0.1)

    workers = rotating.workers()
    thread = threading.Thread(target=log_in_all_the_time)
    thread.start()
    try:
        new = rotating.sso("key", "rotate", "--alg", "ES256").stdout.split()[0]
        published_at = time.monotonic()
        both = until(lambda: (found := sets(rotating)) and len(found) == 1 and kids(found.copy().pop()), 4)
        assert both == kids(before) | {new}
        assert time.monotonic() - published_at < 4
        assert until(lambda: seen and seen[-1][0] == new, 20), "the new key never signed"
        assert time.monotonic() - published_at > 10
        time.sleep(0.5)
    finally:
        stop.set()
        thread.join()
    assert all(kid in published_then for kid, published_then in seen)
    assert {kid for kid, _ in seen} == main(before) | {new}
    assert rotating.workers() == workers  # nobody was started again
    (after,) = sets(rotating)
    assert kids(after) == kids(before) | {new}
