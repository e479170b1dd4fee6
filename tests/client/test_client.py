"""The Python client against a real server: sign-in, pages, versions, errors."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing

import pytest
import trio

from sso.client import (
    AsyncSsoClient,
    MissingRight,
    OtpMissing,
    RecordChanged,
    RecordNotFound,
    RequestRefused,
    ServiceClient,
    SessionToken,
    SignInRequired,
    SsoClient,
    UserJwt,
    UserLogin,
    audit,
    check_rule,
    clients,
    effective_permissions,
    explain_rule,
    read_permissions,
    users,
)
from sso.client.call import ListCall, read_page
from tests.client.conftest import Administration
from tests.kit.browser import AuthenticatorApp
from tests.kit.builders import PASSWORD, TOTP_SECRET

_numbers = itertools.count(1)


def new_login() -> str:
    return f"by-client{next(_numbers)}@example.com"


@pytest.fixture
def sso(administration: Administration) -> Iterator[SsoClient]:
    with SsoClient(administration.url, administration.service) as client:
        yield client


def test_importing_the_client_does_not_import_the_server() -> None:
    code = "import sys, sso.client; print([n for n in ('trio', 'quart', 'sqlalchemy', 'pydantic') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_records_are_created_read_changed_and_deleted(sso: SsoClient) -> None:
    created = sso.send(users.create({"login": new_login(), "nick": "Ann"}))
    user_id = created["user_id"]
    assert sso.send(users.get(user_id))["nick"] == "Ann"
    assert sso.send(users.update(user_id, fields={"nick": "Anna"}))["nick"] == "Anna"
    assert sso.send(users.delete(user_id))["deletion_due"]


def test_change_of_an_old_version_is_refused(sso: SsoClient) -> None:
    user_id = sso.send(users.create({"login": new_login()}))["user_id"]
    read = sso.send(users.get(user_id))
    sso.send(users.update(user_id, fields={"nick": "A"}, if_match=read.etag))
    with pytest.raises(RecordChanged) as refused:
        sso.send(users.update(user_id, fields={"nick": "B"}, if_match=read.etag))
    assert refused.value.status == 412
    assert sso.send(users.get(user_id))["nick"] == "A"


def test_all_pages_are_read(sso: SsoClient) -> None:
    created = {sso.send(users.create({"login": f"page{number}-{new_login()}"}))["user_id"] for number in range(5)}
    assert created <= {user["user_id"] for user in sso.pages(users.list(search="page", limit=2))}


def test_errors_have_status_text_and_field(sso: SsoClient, administration: Administration) -> None:
    with pytest.raises(RecordNotFound):
        sso.send(users.get("999999999999"))
    with pytest.raises(RequestRefused) as refused:
        sso.send(users.create({"login": new_login(), "nik": "Ann"}))
    assert (refused.value.status, refused.value.text, refused.value.field) == (400, "nik: is unknown", ("nik",))
    with SsoClient(administration.url) as nobody, pytest.raises(SignInRequired):
        nobody.send(users.list())
    with SsoClient(administration.url, ServiceClient("program", "wrong")) as impostor, pytest.raises(SignInRequired):
        impostor.send(users.list())


def test_password_login_renews_its_jwt_with_the_session_token(administration: Administration) -> None:
    login = UserLogin("client-root@example.com", PASSWORD)
    with SsoClient(administration.url, login) as client:
        assert client.send(audit.list(limit=1)).records
        refused = client.run(login.headers())
        assert login.forget(refused)  # as after 401
        assert client.run(login.headers()) != refused
        login.forget(refused)  # is not the present one any more
        assert login._session is not None
        assert login._session.jwt.is_valid
        assert client.send(audit.list(limit=1)).records


def test_session_token_continues_a_sign_in(administration: Administration) -> None:
    kept: list[str] = []
    login = UserLogin("client-root@example.com", PASSWORD)
    with SsoClient(administration.url, login) as client:
        client.send(audit.list(limit=1))
    assert login._session is not None
    credentials = SessionToken(login._session.token, login.factor, kept.append)
    with SsoClient(administration.url, credentials) as client:
        assert client.send(audit.list(limit=1)).records
    assert kept == [credentials.token]


def test_second_factor_is_asked_for(administration: Administration) -> None:
    asked: list[list[str]] = []

    def answer(factors: list[str]) -> str:
        asked.append(factors)
        return AuthenticatorApp(TOTP_SECRET).code()

    with SsoClient(administration.url, UserLogin("client-totp@example.com", PASSWORD)) as client:
        with pytest.raises(OtpMissing) as missing:
            client.send(users.list())
        assert missing.value.second_factors == ["totp"]
    credentials = UserLogin("client-totp@example.com", PASSWORD, answer)
    with SsoClient(administration.url, credentials) as client, pytest.raises(MissingRight, match="can_view_users"):
        client.send(users.list())
    assert asked == [["totp"]]


def test_permissions_are_checked_and_explained(sso: SsoClient) -> None:
    user_id = sso.send(users.create({"login": new_login()}))["user_id"]
    assert sso.send(check_rule("770001", "can_manage_users")) is True
    assert sso.send(check_rule(user_id, "can_manage_users")) is False
    assert sso.send(explain_rule(user_id, "can_manage_users"))["reasons"]
    assert isinstance(sso.send(effective_permissions("770001")), list)


def test_user_reads_own_permissions(administration: Administration) -> None:
    login = UserLogin("client-root@example.com", PASSWORD)
    with SsoClient(administration.url, login) as client:
        client.send(read_permissions(1))
        assert login._session is not None
        own = UserJwt(login._session.jwt.value, login.factor)
    with SsoClient(administration.url, own) as client:
        assert isinstance(client.send(read_permissions(1)), list)


def test_secret_of_a_client_is_rotated(sso: SsoClient) -> None:
    fields = {"client_id": "rotated", "profile": "oidc", "redirect_hosts": ["shop.example.com"]}
    first = sso.send(clients.create(fields))["client_secret"]
    second = sso.send(clients.rotate_secret("rotated", overlap=60))["client_secret"]
    assert first != second
    assert len(sso.send(clients.get("rotated"))["secrets"]) == 2


async def test_async_client_does_the_same(administration: Administration) -> None:
    async with AsyncSsoClient(administration.url, administration.service) as sso:
        user_id = (await sso.send(users.create({"login": f"async-{new_login()}"})))["user_id"]
        found = [user["user_id"] async for user in sso.pages(users.list(search="async-", limit=1))]
        assert user_id in found
        with pytest.raises(RecordNotFound):
            await sso.send(users.get("999999999999"))


async def test_change_stream_yields_events_as_they_happen(administration: Administration) -> None:
    async with AsyncSsoClient(administration.url, administration.service) as sso:
        user_id = (await sso.send(users.create({"login": new_login()})))["user_id"]
        after = ""
        with trio.fail_after(60):
            page = ListCall("GET", "/api/admin/changes", read_page, {"limit": 1000})
            while (found := await sso.send(page)).records:  # to the present end of the stream
                after = found.next or after
                page = page.page_after(after)
            await sso.send(users.update(user_id, fields={"disabled": True}))
            async with aclosing(sso.changes(after)) as events:
                async for event in events:
                    if event.get("user_id") == user_id:
                        assert event["type"] == "user_disabled"
                        break
