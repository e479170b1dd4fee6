"""The usual ways to take over an account through another provider. Each must fail and leave the account as it was."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest

from sso.upstream.identity_store import PendingIdentity
from sso.upstream.model import UpstreamIdentity
from sso.web.csrf import csrf_token
from tests.kit.browser import Forms, query
from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, query_of
from tests.kit.server import Server
from tests.upstream import stand_ins
from tests.upstream.player import (
    add_provider,
    assert_refused,
    callback_of,
    failure,
    follow,
    go,
    is_signed_in,
    link,
    player,
    press,
    sign_in,
    sign_out,
    to_provider,
)
from tests.upstream.stand_ins import CodeProvider, Person


@pytest.mark.parametrize(("verified", "trusted"), [(True, True), (True, False), (False, True)])
def test_equal_email_address_links_nothing(
    server: Server, provider: CodeProvider, verified: bool, trusted: bool
) -> None:
    provider_id = add_provider(server, provider, trusted_email=trusted)
    victim, attacker = player(server), player(server)
    provider.person = Person(email=victim.login, email_verified=verified)
    page = page_of_identity(attacker, provider_id, victim.login)
    assert "No account yet" in page
    assert not is_signed_in(attacker)
    # The page of an identity whose address has no account is the same, so it does not show which addresses have one.
    provider.person = Person(email="nobody@example.com", email_verified=verified)
    assert page_of_identity(attacker, provider_id, "nobody@example.com") == page
    # Only the owner of the account can link it.
    path = "/login?next=/login/identity/link"
    assert press(attacker, path, "/login", login=victim.login, password="guessed").status_code == 401
    assert attacker.http.get("/login/identity/link").headers["Location"] == "/login?next=/login/identity/link"
    # And no second account gets the address.
    provider.person = Person(email=victim.login, email_verified=verified)
    sign_in(attacker, provider_id)
    form = {"csrf": csrf_of(attacker), "identity": form_id_of(provider_id, provider.person), "nick": "Mallory"}
    answer = attacker.http.post("/login/identity/create", data=form)
    assert answer.status_code == (409 if trusted and verified else 303)
    assert not is_signed_in(attacker)


def page_of_identity(browser: Browser, provider_id: str, email: str) -> str:
    """Signs in with an identity that has no account, and returns the page without what is different each time."""
    text = follow(browser, sign_in(browser, provider_id)).text.replace(email, "EMAIL")
    return re.sub(r'name="identity" value="\w+"', 'name="identity"', text)


def csrf_of(browser: Browser) -> str:
    """Returns the token of forms in a browser whose identity has no account."""
    return csrf_token(browser.http.cookies.get("sso_upstream") or "")


def form_id_of(provider_id: str, person: Person) -> str:
    """Returns what names the identity of this person in forms, also if its page has no form."""
    identity = UpstreamIdentity(person.subject, person.name, person.email)
    return PendingIdentity(provider_id, identity, next_path="").form_id


def test_login_csrf_through_a_provider_is_refused(server: Server, provider: CodeProvider) -> None:
    """An attacker lets the victim's browser open the answer to the attacker's own sign-in."""
    provider_id = add_provider(server, provider)
    attacker, victim = player(server), player(server)
    link(attacker, provider_id)
    sign_out(attacker)
    answer = callback_of(attacker, provider_id)
    to_provider(victim, provider_id)  # the victim has begun a sign-in, too
    assert_refused(victim, go(victim, answer))
    assert "another browser" in failure(server, provider_id)
    # The attacker's own attempt was not used up by this.
    assert follow(attacker, go(attacker, answer)).status_code == 200
    assert is_signed_in(attacker)


def test_linking_csrf_through_a_provider_is_refused(server: Server, provider: CodeProvider) -> None:
    """An attacker lets a signed-in victim open the answer to a sign-in that the attacker began, to be linked."""
    provider_id = add_provider(server, provider)
    attacker, victim = player(server).sign_in(), player(server).sign_in()
    page = attacker.http.get("/account")
    answer = start_link(attacker, page, provider_id)
    callback = go(attacker, answer.headers["Refresh"].partition("url=")[2]).headers["Location"]
    assert go(victim, callback).status_code == 401
    linked = "SELECT FROM linked_identities JOIN users USING (user_id) WHERE login = $1"
    assert query(server, linked, victim.login) == []
    # Without the secret of the form, no link begins.
    assert victim.http.post("/account/identities/link", data={"provider": provider_id}).status_code == 403


def start_link(browser: Browser, page: httpx.Response, provider_id: str) -> httpx.Response:
    csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    return browser.http.post("/account/identities/link", data={"csrf": csrf, "provider": provider_id})


def test_state_is_valid_once(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    cookie = browser.http.cookies.get("sso_upstream")
    answer = callback_of(browser, provider_id)
    assert go(browser, answer).status_code == 303
    sign_out(browser)
    browser.http.cookies.set("sso_upstream", cookie or "")
    assert_refused(browser, go(browser, answer))


def test_one_of_several_concurrent_answers_is_accepted(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    answer = callback_of(browser, provider_id)
    cookies = {"sso_upstream": browser.http.cookies.get("sso_upstream") or ""}

    def open_answer(_: int) -> int:
        with server.client(cookies=cookies) as client:
            return client.get(answer).status_code

    with ThreadPoolExecutor(10) as pool:
        statuses = sorted(pool.map(open_answer, range(10)))
    assert statuses == [303] + [401] * 9


def test_answer_of_another_provider_is_refused(server: Server, provider: CodeProvider) -> None:
    """Mix-up: the answer for one provider is sent to the callback of another."""
    other = CodeProvider(person=provider.person)
    with stand_ins.running(other):
        first, second = add_provider(server, provider), add_provider(server, other)
        browser = player(server)
        link(browser, first)
        sign_out(browser)
        callback = callback_of(browser, second)
        assert_refused(browser, go(browser, callback.replace(second, first)))
        # The provider announces the parameter iss (RFC 9207).
        for iss in ({"iss": provider.url}, {"iss": ""}):
            other.wrong_answer = iss
            assert_refused(browser, sign_in(browser, second))
            assert failure(server, second) == "authorization response: wrong iss"
        callback = callback_of(browser, second)
        assert_refused(browser, go(browser, without(callback, "iss")))


def without(url: str, name: str) -> str:
    parts = urlsplit(url)
    return parts._replace(query=urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != name])).geturl()


def test_code_of_another_person_is_refused(server: Server, provider: CodeProvider) -> None:
    """Code injection: an attacker who has stolen the victim's code uses it in the attacker's own sign-in."""
    provider_id = add_provider(server, provider)
    victim, attacker = player(server), player(server)
    link(victim, provider_id)
    sign_out(victim)
    stolen = query_of(go(victim, to_provider(victim, provider_id)))["code"]
    own = callback_of(attacker, provider_id)
    code = dict(parse_qsl(urlsplit(own).query))["code"]
    assert_refused(attacker, go(attacker, own.replace(code, stolen)))
    assert failure(server, provider_id) == "token endpoint: status 400, invalid_grant"
    assert stolen not in server.log()


def wrong(**claims: object) -> Callable[[CodeProvider], None]:
    return lambda provider: provider.wrong_claims.update(claims)


WRONG_TOKENS: list[tuple[Callable[[CodeProvider], None], str]] = [
    (wrong(iss="https://accounts.example"), "wrong iss"),
    (wrong(aud="another client"), "wrong aud"),
    (wrong(aud=["sso", "another client"]), "wrong azp"),
    (wrong(azp="another client"), "wrong azp"),
    (wrong(nonce="guessed"), "wrong nonce"),
    (wrong(nonce=None), "wrong nonce"),
    (wrong(exp=1), "bad iat"),
    (wrong(iat=1, exp=2), "expired"),
    (wrong(iat=1), "bad iat"),
    (wrong(sub=""), "bad sub"),
    (wrong(sub=7), "bad sub"),
    (lambda provider: setattr(provider, "algorithm", "none"), "not a JWT"),
    (lambda provider: setattr(provider, "algorithm", "HS256"), "InvalidAlgorithmError"),
]


def test_wrong_id_token_is_refused(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    for change, reason in WRONG_TOKENS:
        provider.wrong_claims, provider.algorithm = {}, "ES256"
        change(provider)
        assert_refused(browser, sign_in(browser, provider_id))
        assert failure(server, provider_id) == f"id_token: {reason}"


def test_token_signed_with_another_key_is_refused(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    published, own = provider.key, CodeProvider().key
    answer = callback_of(browser, provider_id)
    provider.key = own
    provider.requests.clear()
    assert_refused(browser, go(browser, answer))
    assert failure(server, provider_id) == "id_token: InvalidSignatureError"
    # The keys are in memory, and a token with a known id does not let them be read again.
    assert provider.requests.count("/jwks") <= 1
    provider.key = published


def test_wrong_discovery_document_is_refused(server: Server, provider: CodeProvider) -> None:
    browser = player(server)
    for name, value in (
        ("issuer", "https://accounts.example"),
        ("issuer", None),
        ("authorization_endpoint", "http://provider.example/authorize"),
        ("token_endpoint", "file:///etc/passwd"),
        ("jwks_uri", "http://169.254.169.254/jwks"),
        ("userinfo_endpoint", "http://10.0.0.1/"),
    ):
        provider.wrong_metadata = {name: value}
        provider_id = add_provider(server, provider)
        answer = browser.http.get(f"/login/upstream/{provider_id}")
        assert answer.status_code == 401, name
        assert 'role="alert"' in answer.text
        assert failure(server, provider_id).startswith("discovery: ")


def test_userinfo_of_another_person_is_refused(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    provider.wrong_claims["sub"] = "another subject"
    browser = player(server)
    assert_refused(browser, sign_in(browser, provider_id))
    assert failure(server, provider_id) == "userinfo endpoint: wrong sub"


def test_open_redirect_is_not_possible(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    link(browser, provider_id)
    for path in ("https://evil.example", "//evil.example", "/\\evil.example", "/%2Fevil.example"):
        sign_out(browser)
        page = follow(browser, sign_in(browser, provider_id, path))
        assert str(page.url) == f"{server.base_url}/account"


def test_password_of_the_account_does_not_pass_to_the_provider(server: Server, provider: CodeProvider) -> None:
    """The identity waits in one browser; another that signs in with a password gets nothing of it."""
    provider_id = add_provider(server, provider)
    first, second = player(server), player(server)
    sign_in(first, provider_id)
    press(second, "/login?next=/login/identity/link", "/login", login=second.login, password=PASSWORD)
    assert second.http.get("/login/identity/link").headers["Location"] == "/account"


LINK, CREATE = "/login/identity/link", "/login/identity/create"


def test_button_links_the_identity_that_the_page_has_shown(server: Server, provider: CodeProvider) -> None:
    """In another tab, somebody else signs in with an identity of theirs before the button is pressed."""
    provider_id = add_provider(server, provider)
    browser = player(server)
    sign_in(browser, provider_id)
    press(browser, f"/login?next={LINK}", "/login", login=browser.login, password=PASSWORD)
    shown = Forms(browser.http.get(LINK).text).by_action[LINK][0]
    provider.person = Person(name="Eve of Elsewhere")
    sign_in(browser, provider_id)
    page = browser.http.post(LINK, data=shown)
    assert (page.status_code, "Eve of Elsewhere" in page.text, 'role="alert"' in page.text) == (409, True, True)
    assert names_of_links(server, provider_id) == []
    assert browser.http.post(LINK, data=Forms(page.text).by_action[LINK][0]).status_code == 303
    assert names_of_links(server, provider_id) == ["Eve of Elsewhere"]


def test_button_works_after_the_same_person_has_signed_in_again(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider)
    browser = player(server)
    sign_in(browser, provider_id)
    press(browser, f"/login?next={LINK}", "/login", login=browser.login, password=PASSWORD)
    shown = Forms(browser.http.get(LINK).text).by_action[LINK][0]
    sign_in(browser, provider_id)
    assert browser.http.post(LINK, data=shown).status_code == 303
    assert names_of_links(server, provider_id) == [provider.person.name]


def test_button_creates_the_account_that_the_page_has_shown(server: Server, provider: CodeProvider) -> None:
    provider_id = add_provider(server, provider, trusted_email=True)
    browser = player(server)
    provider.person = Person(email=f"ann-{provider_id}@example.com")
    page = follow(browser, sign_in(browser, provider_id))
    shown = Forms(page.text).by_action[CREATE][0]
    provider.person = Person(email=f"eve-{provider_id}@example.com", name="Eve of Elsewhere")
    sign_in(browser, provider_id)
    page = browser.http.post(CREATE, data=shown | {"nick": "Ann"})
    assert (page.status_code, "Eve of Elsewhere" in page.text, 'role="alert"' in page.text) == (409, True, True)
    assert names_of_links(server, provider_id) == []
    assert browser.http.post(CREATE, data=Forms(page.text).by_action[CREATE][0]).status_code == 303
    assert names_of_links(server, provider_id) == ["Eve of Elsewhere"]


def names_of_links(server: Server, provider_id: str) -> list[str]:
    rows = query(server, "SELECT name FROM linked_identities WHERE provider_id = $1", provider_id)
    return [row["name"] for row in rows]
