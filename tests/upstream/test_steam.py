"""Steam: assertions of OpenID 2.0 that are forged, changed, replayed or meant for others are refused."""

from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.kit.server import Server
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
    sign_in,
    sign_out,
    to_provider,
)
from tests.upstream.stand_ins import SteamStandIn

OTHER_ID = "76561197960265729"


def changed(url: str, **fields: str | None) -> str:
    """Returns the answer with changed fields; None removes one."""
    parts = urlsplit(url)
    pairs: dict[str, str | None] = dict(parse_qsl(parts.query, keep_blank_values=True))
    pairs |= {f"openid.{name}": value for name, value in fields.items()}
    return parts._replace(query=urlencode({name: value for name, value in pairs.items() if value is not None})).geturl()


def test_forged_assertion_is_refused(server: Server, steam: SteamStandIn) -> None:
    """An attacker writes the SteamID of the victim into the own assertion."""
    provider_id = add_provider(server, steam, "steam")
    victim, attacker = player(server), player(server)
    link(victim, provider_id)
    claimed = f"{steam.url}/openid/id/{steam.steam_id}"
    steam.steam_id = OTHER_ID
    answer = callback_of(attacker, provider_id)
    assert_refused(attacker, go(attacker, changed(answer, claimed_id=claimed, identity=claimed)))
    assert failure(server, provider_id).startswith("check_authentication: ")


WRONG_FIELDS = [
    ("op_endpoint", "https://evil.example/openid/login", "openid.op_endpoint: not the expected value"),
    ("return_to", "https://evil.example/callback", "openid.return_to: not the expected value"),
    ("ns", "http://openid.net/signon/1.1", "openid.ns: not the expected value"),
    ("mode", "checkid_setup", "openid.mode: not the expected value"),
    ("identity", "{url}/openid/id/" + OTHER_ID, "openid.identity: not the expected value"),
    (
        "signed",
        "signed,op_endpoint,return_to,response_nonce,assoc_handle",
        "openid.signed: not the expected fields",
    ),
    ("signed", "op_endpoint,claimed_id,identity,return_to,assoc_handle", "openid.signed: not the expected fields"),
    ("response_nonce", "2020-01-01T00:00:00Zabc", "response_nonce: too old"),
    ("response_nonce", "yesterday", "response_nonce: expected a time and further characters"),
]
NO_STEAM_IDS = [
    "https://evil.example/openid/id/76561197960287930",
    "{url}.evil.example/openid/id/76561197960287930",
    "{url}/openid/id/76561197960287930/",
    "{url}/openid/id/76561197960287930\n",
    "{url}/openid/id/7656119796028793",
    "{url}/openid/id/٧٦٥٦١١٩٧٩٦٠٢٨٧٩٣٠",
    "{url}/openid/id/../id/76561197960287930",
]


def test_field_with_a_wrong_value_is_refused_before_steam_is_asked(server: Server, steam: SteamStandIn) -> None:
    steam.is_careless = True
    provider_id, browser = add_provider(server, steam, "steam"), player(server)
    for field, value, reason in WRONG_FIELDS:
        steam.wrong_fields = {f"openid.{field}": value.format(url=steam.url)}
        assert_refused(browser, sign_in(browser, provider_id))
        assert failure(server, provider_id) == reason
        assert not steam.confirmed


def test_claimed_id_that_is_no_steam_id_is_refused(server: Server, steam: SteamStandIn) -> None:
    steam.is_careless = True
    provider_id, browser = add_provider(server, steam, "steam"), player(server)
    for form in NO_STEAM_IDS:
        claimed = form.format(url=steam.url)
        steam.wrong_fields = {"openid.claimed_id": claimed, "openid.identity": claimed}
        assert_refused(browser, sign_in(browser, provider_id))
        assert failure(server, provider_id) == "openid.claimed_id: expected a SteamID"


def test_return_to_of_another_attempt_is_refused(server: Server, steam: SteamStandIn) -> None:
    """An assertion of a victim, made for another state or another site, is sent with the attacker's state."""
    steam.is_careless = True
    provider_id = add_provider(server, steam, "steam")
    victim, attacker = player(server), player(server)
    stolen = dict(parse_qsl(urlsplit(callback_of(victim, provider_id)).query))
    state = dict(parse_qsl(urlsplit(callback_of(attacker, provider_id)).query))["state"]
    query = urlencode({**stolen, "state": state})
    assert_refused(attacker, attacker.http.get(f"/login/upstream/{provider_id}/callback?{query}"))
    assert failure(server, provider_id) == "openid.return_to: not the expected value"


def test_nonce_is_accepted_once(server: Server, steam: SteamStandIn) -> None:
    """Even a provider that confirms an assertion again cannot replay it."""
    provider_id = add_provider(server, steam, "steam")
    browser = player(server)
    link(browser, provider_id)
    sign_out(browser)
    nonce = dict(parse_qsl(urlsplit(answer := callback_of(browser, provider_id)).query))["openid.response_nonce"]
    assert follow(browser, go(browser, answer)).status_code == 200
    sign_out(browser)
    steam.is_careless = True
    steam.wrong_fields = {"openid.response_nonce": nonce}
    assert_refused(browser, sign_in(browser, provider_id))
    assert failure(server, provider_id) == "response_nonce: was used before"


def test_unsigned_and_repeated_fields_are_refused(server: Server, steam: SteamStandIn) -> None:
    steam.is_careless = True
    provider_id = add_provider(server, steam, "steam")
    browser = player(server)
    answer = callback_of(browser, provider_id)
    assert_refused(browser, go(browser, f"{answer}&openid.claimed_id=x"))
    assert failure(server, provider_id) == "answer: a parameter appears twice"
    assert_refused(browser, go(browser, changed(callback_of(browser, provider_id), sig=None)))


def test_cancelled_sign_in_has_a_friendly_text(server: Server, steam: SteamStandIn) -> None:
    provider_id = add_provider(server, steam, "steam")
    browser = player(server)
    state = dict(
        parse_qsl(
            urlsplit(dict(parse_qsl(urlsplit(to_provider(browser, provider_id)).query))["openid.return_to"]).query
        )
    )
    answer = browser.http.get(f"/login/upstream/{provider_id}/callback", params={**state, "openid.mode": "cancel"})
    assert answer.status_code == 401
    assert "You did not continue at Elsewhere." in answer.text
    assert not is_signed_in(browser)
