"""Answers of passkeys that cost much or come from an embedded page are refused. Each answer uses up its challenge."""

from collections.abc import Callable, Iterator
from typing import Any

import cbor2
import orjson
import pytest

from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.passkey import HAS_EXTENSIONS, USER_PRESENT, USER_VERIFIED, SoftwarePasskey, page_options
from tests.kit.passkey_sign_in import new_passkey, passkey_sign_in, register
from tests.kit.server import Server

FLAGS = USER_PRESENT | USER_VERIFIED | HAS_EXTENSIONS
EMBEDDED = [{"crossOrigin": True}, {"topOrigin": "https://evil.example"}, {"crossOrigin": "false"}]
PUBLIC_KEY = "SELECT public_key FROM passkeys WHERE credential_id = $1"


def extensions(value: Any) -> dict[str, Any]:
    return {"flags": FLAGS, "extensions": value if isinstance(value, bytes) else cbor2.dumps(value)}


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    with fresh_browser(server, new_user(server)) as browser:
        yield browser


@pytest.fixture(scope="module")
def passkey(server: Server, browser: Browser) -> SoftwarePasskey:
    passkey = new_passkey(server)
    assert register(browser, passkey).status_code == 303
    return passkey


# Each of these is signed, so only its form can be the reason to refuse it.
REFUSED = {
    "decimal fraction": extensions({"x": cbor2.CBORTag(4, [1, 2])}),
    "bigfloat": extensions(bytes.fromhex("a16178c5820102")),
    "big number": extensions(bytes.fromhex("a16178c24101")),
    "tagged map": extensions(bytes.fromhex("d9d9f7a0")),
    "float": extensions({"x": 1.5}),
    "undefined": extensions(bytes.fromhex("a16178f7")),
    "map of unknown length": extensions(bytes.fromhex("bfff")),
    "bytes of unknown length": extensions(bytes.fromhex("a161785f4101ff")),
    "nested arrays": extensions({"x": [[[[[[[1]]]]]]]}),
    "key that is an array": extensions(bytes.fromhex("a1810101")),
    "large": extensions({"x": bytes(1024)}),
    "credential": {"flags": USER_PRESENT | USER_VERIFIED | 0x40, "extensions": bytes(18) + b"\xa0"},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_authenticator_data_with_costly_contents_is_refused(
    server: Server, passkey: SoftwarePasskey, changes: dict[str, Any]
) -> None:
    with Browser(server) as browser:
        assert passkey_sign_in(browser, passkey, **changes).status_code == 401


def test_authenticator_data_with_usual_extensions_is_accepted(server: Server, passkey: SoftwarePasskey) -> None:
    usual = {"credProtect": 2, "hmac-secret": b"x" * 32, "uvm": [[2, 4, 2]], "ok": True, "none": None}
    with Browser(server) as browser:
        assert passkey_sign_in(browser, passkey, **extensions(usual)).status_code == 303


@pytest.mark.parametrize(
    "changes",
    [
        {"attestation": {"fmt": "packed", "attStmt": {"alg": -7, "sig": b"x"}}},
        {"attestation": {"fmt": "none", "attStmt": {"x": 1}}},
        {"attestation": {"other": bytes(8 * 1024)}},
        {"attestation": {"other": cbor2.CBORTag(4, [1, 2])}},
        {"key_members": {-70000: cbor2.CBORTag(5, [1, 2])}},
        {"key_members": {-2: b"x" * 31}},
        {"key_members": {3: -257}},
        *({"client_data": members} for members in EMBEDDED),
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_registration_with_costly_contents_or_of_an_embedded_page_is_refused(
    server: Server, browser: Browser, changes: dict[str, Any]
) -> None:
    passkey = new_passkey(server)
    browser.open_account()
    answer = passkey.create(page_options(browser.page.text, "passkey-registration"), **changes)
    assert browser.submit("/account/passkeys", credential=answer, name="Refused").status_code == 422
    assert not query(server, PUBLIC_KEY, passkey.credential_id)


def test_stored_key_has_only_the_members_that_are_used(server: Server, browser: Browser) -> None:
    passkey = new_passkey(server)
    browser.open_account()
    options = page_options(browser.page.text, "passkey-registration")
    answer = passkey.create(options, key_members={-70000: b"x" * 600, 2: b"kid"})
    assert browser.submit("/account/passkeys", credential=answer, name="Extra").status_code == 303
    (row,) = query(server, PUBLIC_KEY, passkey.credential_id)
    assert set(cbor2.loads(row["public_key"])) == {1, 3, -1, -2, -3}
    with Browser(server) as other:
        assert passkey_sign_in(other, passkey).status_code == 303


@pytest.mark.parametrize(("size", "status"), [(600, 303), (20_000, 401)])
def test_key_stored_with_more_members_is_bounded(
    server: Server, passkey: SoftwarePasskey, size: int, status: int
) -> None:
    (row,) = query(server, PUBLIC_KEY, passkey.credential_id)
    larger = cbor2.dumps(cbor2.loads(row["public_key"]) | {-70000: bytes(size)})
    store = "UPDATE passkeys SET public_key = $2 WHERE credential_id = $1"
    query(server, store, passkey.credential_id, larger)
    try:
        with Browser(server) as browser:
            assert passkey_sign_in(browser, passkey).status_code == status
    finally:
        query(server, store, passkey.credential_id, row["public_key"])


@pytest.mark.parametrize("members", EMBEDDED, ids=str)
def test_answer_of_an_embedded_page_neither_signs_in_nor_confirms(
    server: Server, browser: Browser, passkey: SoftwarePasskey, members: dict[str, Any]
) -> None:
    with Browser(server) as other:
        assert passkey_sign_in(other, passkey, client_data=members).status_code == 401
    browser.open_account()
    options = page_options(browser.page.text, "passkey-confirmation")
    assert browser.submit("/account/email-2fa", credential=passkey.get(options, client_data=members)).status_code == 422
    assert browser.problem == "Your passkey was not accepted. Please try again."


def _damaged(answer: str) -> str:
    parsed = orjson.loads(answer)
    return orjson.dumps(parsed | {"response": parsed["response"] | {"signature": "AAAA"}}).decode()


def _of_an_unknown_passkey(answer: str) -> str:
    return orjson.dumps(orjson.loads(answer) | {"id": "AAAA", "rawId": "AAAA"}).decode()


def _large(answer: str) -> str:
    parsed = orjson.loads(answer)
    return orjson.dumps(parsed | {"response": parsed["response"] | {"authenticatorData": "A" * 2000}}).decode()


@pytest.mark.parametrize("change", [_damaged, _of_an_unknown_passkey, _large])
def test_wrong_answer_uses_up_its_challenge(
    server: Server, passkey: SoftwarePasskey, change: Callable[[str], str]
) -> None:
    with Browser(server) as browser:
        browser.get("/login")
        form, options = browser.form("/login/passkey"), page_options(browser.page.text)
        wrong = change(passkey.get(options))
        assert browser.post("/login/passkey", form | {"credential": wrong}).status_code == 401
        assert browser.post("/login/passkey", form | {"credential": passkey.get(options)}).status_code == 401


def test_wrong_answer_uses_up_the_challenge_of_a_registration_and_a_confirmation(
    server: Server, browser: Browser, passkey: SoftwarePasskey
) -> None:
    browser.open_account()
    form, new = browser.form("/account/passkeys"), new_passkey(server)
    options = page_options(browser.page.text, "passkey-registration")
    for changes in ({"flags": USER_PRESENT}, {}):
        fields = form | {"credential": new.create(options, **changes)}
        assert browser.post("/account/passkeys", fields).status_code == 422
    browser.open_account()
    form = browser.form("/account/email-2fa")
    options = page_options(browser.page.text, "passkey-confirmation")
    for changes in ({"flags": USER_PRESENT}, {}):
        fields = form | {"credential": passkey.get(options, **changes)}
        assert browser.post("/account/email-2fa", fields).status_code == 422
