"""`sso apply`: users and clients, repeated runs, and errors with their location."""

from typing import Any

import pytest
import trio

from sso.accounts.authentication_context import by_password
from sso.accounts.model import LoginOptions, User
from sso.accounts.second_factor.codes import totp_purpose
from sso.core.errors import ServerBusy
from sso.core.field_errors import FieldError
from sso.core.net import parse_address
from sso.db.errors import Unavailable
from sso.db.statement import Statement
from sso.oauth.clients.store import list_client_rows, secret_purpose
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from sso.state.summary import ApplyCounts
from tests.kit.builders import PASSWORD, TOTP_SECRET, add_user

HERE = parse_address("127.0.0.1")
EVERY_ROW = Statement(
    """SELECT 'user' AS kind, to_jsonb(u) AS row FROM users u
    UNION ALL SELECT 'client', to_jsonb(c) FROM oauth_clients c ORDER BY 1, 2"""
)
CLIENT = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id")

USER: dict[str, Any] = {
    "user_id": "1001",
    "login": "ann@example.com",
    "password": PASSWORD,
    "nick": "Ann 🎮",
    "country": "DE",
    "lang": "de",
    "level": "7",
    "tags": ["beta", "vip"],
    "purchases": ["full_game"],
    "email_verified": True,
    "phone": "+490000000",
    "phone_verified": True,
    "totp_secret": TOTP_SECRET,
    "email_2fa": True,
    "meta": {"geo": "DE", "registration": "web", "deep": {"list": [1, None, 2.5, "x"]}},
}
SHOP: dict[str, Any] = {
    "client_id": "shop",
    "client_secret": "a-secret-of-the-shop",
    "name": "Shop",
    "redirect_hosts": ["shop.example.com", "http://localhost", "[::1]"],
    "redirect_uris": ["https://shop.example.com/callback"],
    "profile": "oidc",
    "consent": True,
    "first_party": True,
}


async def apply(services: Services, *users: dict[str, Any], clients: tuple[dict[str, Any], ...] = ()) -> ApplyCounts:
    applier = Applier(services.database, services.hasher, services.operations)
    return await applier.apply(parse({"users": list(users), "clients": list(clients)}))


async def everything(services: Services) -> list[tuple[str, Any]]:
    return [(row["kind"], row["row"]) for row in await services.database.rows(EVERY_ROW)]


async def user(services: Services, id_or_login: str) -> User:
    user = await services.users.find(id_or_login)
    assert user is not None
    return user


async def password_is(services: Services, id_or_login: str, password: str) -> bool:
    return await services.hasher.matches((await user(services, id_or_login)).password_hash, password)


async def test_user_is_created_with_all_fields(services: Services) -> None:
    assert await apply(services, USER) == ApplyCounts(created=1, changed=0, unchanged=0)
    ann = await user(services, "1001")
    for name in USER.keys() - {"password", "totp_secret", "tags", "purchases"}:
        assert getattr(ann, name) == USER[name], name
    assert (list(ann.tags), list(ann.purchases)) == (["beta", "vip"], ["full_game"])
    assert await password_is(services, "1001", PASSWORD)
    assert ann.totp_sealed is not None
    assert services.keyring.decrypt(totp_purpose("1001"), ann.totp_sealed) == TOTP_SECRET


async def test_client_is_created_with_all_fields(services: Services) -> None:
    assert await apply(services, clients=(SHOP,)) == ApplyCounts(created=1, changed=0, unchanged=0)
    row = await services.database.row(CLIENT, client_id="shop")
    assert row is not None
    for name in SHOP.keys() - {"client_secret"}:
        assert row[name] == SHOP[name], name
    assert services.keyring.decrypt(secret_purpose("shop"), row["secret_sealed"]) == SHOP["client_secret"]


async def test_absent_fields_get_their_defaults(services: Services) -> None:
    await apply(services, {"login": "ann@example.com"}, clients=({"client_id": "c"},))
    ann = await user(services, "ann@example.com")
    assert (ann.nick, ann.lang, ann.level, ann.tags, ann.meta) == ("", "en", "0", (), {})
    assert (ann.email_verified, ann.email_2fa, ann.disabled) == (False, False, False)
    assert ann.password_hash is None
    assert ann.second_factors == ()
    row = await services.database.row(CLIENT, client_id="c")
    assert row is not None
    assert (row["profile"], row["consent"], row["secret_sealed"]) == ("strict", False, None)


async def test_generated_user_id_is_unused(services: Services) -> None:
    taken = [{"user_id": str(number), "login": f"taken{number}@example.com"} for number in range(1000, 1005)]
    await apply(services, *taken)
    await apply(services, {"login": "one@example.com"}, {"login": "two@example.com"})
    ids = [(await user(services, login)).user_id for login in ("one@example.com", "two@example.com")]
    assert ids == ["1005", "1006"]


async def test_second_run_changes_nothing(services: Services) -> None:
    await apply(services, USER, clients=(SHOP,))
    ann = await user(services, "1001")
    jwt = services.user_jwts.issue(ann, LoginOptions(HERE, factor="d"), "login", validated_at=2**40)
    tokens = await services.session_tokens.issue(ann, by_password(), LoginOptions(HERE))
    before = await everything(services)
    assert await apply(services, USER, clients=(SHOP,)) == ApplyCounts(created=0, changed=0, unchanged=2)
    assert await everything(services) == before  # the password's hash and the sealed values, too
    await services.user_jwts.verify(jwt, HERE, factor="d")
    await services.session_tokens.sign_in(tokens.token, HERE)


async def test_records_and_fields_that_are_not_named_are_kept(services: Services) -> None:
    other = {"login": "bob@example.com", "nick": "Bob", "password": "another one"}
    await apply(services, USER, other, clients=(SHOP, {"client_id": "other"}))
    before = await everything(services)
    counts = await apply(
        services, {"login": USER["login"], "nick": "Anna"}, clients=({"client_id": "shop", "name": "The Shop"},)
    )
    assert counts == ApplyCounts(created=0, changed=2, unchanged=0)
    for (_, was), (_, now) in zip(before, await everything(services), strict=True):
        changed = {name for name in was if was[name] != now[name]}
        expected = {"1001": {"nick", "updated"}, "shop": {"name"}}
        assert changed == expected.get(was.get("user_id") or was.get("client_id"), set())


async def test_empty_value_replaces_the_stored_one(services: Services) -> None:
    await apply(services, USER)
    empty = {"nick": "", "tags": [], "purchases": [], "meta": {}, "email_2fa": False, "phone": ""}
    await apply(services, {"login": USER["login"], **empty})
    ann = await user(services, "1001")
    assert (ann.nick, ann.tags, ann.purchases, ann.meta, ann.email_2fa, ann.phone) == ("", (), (), {}, False, "")


async def test_null_means_absent(services: Services) -> None:
    await apply(services, USER, clients=(SHOP,))
    nulls = {name: None for name in USER if name != "login"}
    counts = await apply(
        services,
        {"login": USER["login"], **nulls},
        clients=({name: value if name == "client_id" else None for name, value in SHOP.items()},),
    )
    assert counts.unchanged == 2


async def test_user_is_identified_by_id_or_by_case_insensitive_login(services: Services) -> None:
    await apply(services, USER)
    assert (await apply(services, {"login": "ANN@example.com"})).changed == 1  # as it is spelled now
    assert (await user(services, "1001")).login == "ANN@example.com"
    assert (await apply(services, {"user_id": "1001", "login": "anna@example.org"})).changed == 1
    assert (await user(services, "anna@EXAMPLE.org")).user_id == "1001"
    assert await services.users.get_by_login("ann@example.com") is None
    assert await password_is(services, "1001", PASSWORD)


async def test_changed_password_ends_sessions_and_tokens(services: Services) -> None:
    await apply(services, USER, {"login": "bob@example.com", "password": PASSWORD})
    ann, bob = await user(services, "1001"), await user(services, "bob@example.com")
    jwts = [
        services.user_jwts.issue(who, LoginOptions(HERE, factor="d"), "login", validated_at=2**40) for who in (ann, bob)
    ]
    tokens = [await services.session_tokens.issue(who, by_password(), LoginOptions(HERE)) for who in (ann, bob)]
    assert (await apply(services, USER | {"password": "another one"})).changed == 1
    assert await password_is(services, "1001", "another one")
    assert not await password_is(services, "1001", PASSWORD)
    assert (await user(services, "1001")).valid_from > ann.valid_from
    for refused in (
        services.user_jwts.verify(jwts[0], HERE, factor="d"),
        services.session_tokens.sign_in(tokens[0].token, HERE),
        services.session_tokens.sign_in(tokens[0].stoken, HERE),
    ):
        with pytest.raises(Exception, match=r"void|invalid credentials"):
            await refused
    await services.user_jwts.verify(jwts[1], HERE, factor="d")
    await services.session_tokens.sign_in(tokens[1].token, HERE)


async def test_disabling_ends_sessions_and_tokens_and_enabling_does_not(services: Services) -> None:
    await apply(services, USER)
    await apply(services, {"login": USER["login"], "disabled": True})
    ann = await user(services, "1001")
    assert ann.disabled
    assert ann.valid_from > 0
    assert (await apply(services, {"login": USER["login"], "disabled": True})).unchanged == 1
    await apply(services, {"login": USER["login"], "disabled": False})
    again = await user(services, "1001")
    assert (again.disabled, again.valid_from) == (False, ann.valid_from)


async def test_login_of_another_user_is_refused_and_changes_nothing(services: Services) -> None:
    await apply(services, USER, {"user_id": "1002", "login": "bob@example.com"})
    before = await everything(services)
    for last in ({"user_id": "2002", "login": "ANN@example.com"}, {"user_id": "1001", "login": "bob@example.com"}):
        with pytest.raises(FieldError) as caught:
            await apply(services, {"login": "new@example.com"}, last, clients=(SHOP,))
        assert str(caught.value) == "users[1].login: belongs to another user_id"
        assert await everything(services) == before


async def test_client_that_the_management_api_refuses_is_refused(services: Services) -> None:
    uris = ["https://a.example.com/x"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"redirect_uris": ["ftp://shop.example.com/x#frag"]}, "redirect_uris[0]: expected an absolute"),
        ({"redirect_uris": uris, "redirect_hosts": ["b.example.com"]}, "redirect_uris[0]: "),
        ({"public": True, "profile": "strict"}, "public: needs the profile oidc"),
        ({"profile": "strict", "grant_types": ["client_credentials"]}, "grant_types: client_credentials needs"),
    ]
    for fields, problem in wrong:
        with pytest.raises(FieldError) as error:
            await apply(services, clients=({"client_id": "other"}, {"client_id": "shop", **fields}))
        assert str(error.value).startswith(f"clients[1].{problem}")
        assert await list_client_rows(services.database) == []


async def test_concurrent_runs_of_a_document_equal_one_run(services: Services) -> None:
    counts: list[ApplyCounts] = []

    async def one() -> None:
        counts.append(await apply(services, *({"login": f"u{n}@example.com"} for n in range(20)), clients=(SHOP,)))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
    assert sum(count.created for count in counts) == 21
    assert len(await everything(services)) == 21


async def test_progress_is_reported_for_many_users(services: Services) -> None:
    users = [{"login": f"u{number}@example.com", "password": f"password {number}"} for number in range(30)]
    progress: list[tuple[str, int, int]] = []
    applier = Applier(services.database, services.hasher, services.operations)
    counts = await applier.apply(parse({"users": users}), lambda *report: progress.append(report))
    assert counts.created == 30
    hashed = [("hashing passwords", number, 30) for number in range(1, 31)]
    assert progress == hashed + [("storing records", number, 30) for number in range(1, 31)]
    assert await password_is(services, "u17@example.com", "password 17")


@pytest.mark.parametrize("failure", [Unavailable("the database is down"), ServerBusy()], ids=["database", "hasher"])
async def test_failure_of_one_of_several_passwords_is_raised_as_it_is(
    services: Services, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """The API answers it with 503, and an ExceptionGroup with 500."""

    async def fail(*_: object) -> str:
        raise failure

    monkeypatch.setattr(services.hasher, "hash", fail)
    with pytest.raises(type(failure)):
        await apply(services, *({"login": f"u{number}@example.com", "password": "secret word"} for number in range(2)))


OK_USER = {"login": "ok@example.com"}


@pytest.mark.parametrize(("given", "verified"), [({}, False), ({"email_verified": True}, True)])
async def test_changed_login_is_not_verified_unless_the_document_says_so(
    services: Services, given: dict[str, bool], verified: bool
) -> None:
    user = await add_user(services, email_verified=True)
    applier = Applier(services.database, services.hasher, services.operations)
    await applier.apply(parse({"users": [{"user_id": user.user_id, "login": user.login.upper()}]}))
    stored = await services.users.get(user.user_id)
    assert stored
    assert stored.email_verified, "the same address in another spelling"
    await applier.apply(parse({"users": [{"user_id": user.user_id, "login": "new@example.com", **given}]}))
    stored = await services.users.get(user.user_id)
    assert stored
    assert (stored.login, stored.email_verified) == ("new@example.com", verified)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"users": [OK_USER, {"nick": "x"}]}, "users[1].login: "),
    ({"users": [OK_USER, {"login": 5}]}, "users[1].login: "),
    ({"users": [OK_USER, {"login": "no-address"}]}, "users[1].login: must be an e-mail address"),
    ({"users": [OK_USER, {"login": "a b@example.com"}]}, "users[1].login: "),
    ({"users": [OK_USER, {"login": "a\n@example.com"}]}, "users[1].login: "),
    ({"users": [OK_USER, {"login": "a" * 400 + "@example.com"}]}, "users[1].login: "),
    ({"users": [{**OK_USER, "user_id": 5}]}, "users[0].user_id: "),
    ({"users": [{**OK_USER, "user_id": "007"}]}, "users[0].user_id: "),
    ({"users": [{**OK_USER, "user_id": "0"}]}, "users[0].user_id: "),
    ({"users": [{**OK_USER, "user_id": "-1"}]}, "users[0].user_id: "),
    ({"users": [{**OK_USER, "user_id": "１"}]}, "users[0].user_id: "),
    ({"users": [{**OK_USER, "user_id": str(2**63)}]}, "users[0].user_id: "),
    ({"users": [{"login": "grp:;@example.com"}]}, "users[0].login: must be an e-mail address such as name@example.com"),
    ({"users": [{"login": "a@[1.2.3.4"}]}, "users[0].login: must be an e-mail address such as name@example.com"),
    ({"users": [{**OK_USER, "password": ""}]}, "users[0].password: "),
    ({"users": [{**OK_USER, "password": "x" * 1025}]}, "users[0].password: must be at most 1024 characters"),
    ({"users": [{**OK_USER, "level": 7}]}, "users[0].level: must be a string"),
    ({"users": [{**OK_USER, "tags": "beta"}]}, "users[0].tags: must be an array"),
    ({"users": [{**OK_USER, "tags": ["ok", "a,b"]}]}, "users[0].tags[1]: must be a word without a comma"),
    ({"users": [{**OK_USER, "tags": [""]}]}, "users[0].tags[0]: "),
    ({"users": [{**OK_USER, "email_verified": "yes"}]}, "users[0].email_verified: "),
    ({"users": [{**OK_USER, "email_verified": 1}]}, "users[0].email_verified: must be true or false"),
    ({"users": [{**OK_USER, "totp_secret": "short"}]}, "users[0].totp_secret: "),
    ({"users": [{**OK_USER, "totp_secret": "0189" * 8}]}, "users[0].totp_secret: "),
    ({"users": [{**OK_USER, "nick": "a\nb"}]}, "users[0].nick: must not contain control characters"),
    ({"users": [{**OK_USER, "meta": []}]}, "users[0].meta: must be an object"),
    ({"users": [{**OK_USER, "nope": 1}]}, "users[0].nope: unknown field"),
    ({"users": [{**OK_USER, "password_hash": "x"}]}, "users[0].password_hash: "),
    ({"users": {}}, "users: "),
    ({"users": [5]}, "users[0]: must be an object"),
    ({"users": None}, "users: "),
    ({"clients": [{"name": "x"}]}, "clients[0].client_id: is required"),
    ({"clients": [{"client_id": "a b"}]}, "clients[0].client_id: "),
    ({"clients": [{"client_id": ""}]}, "clients[0].client_id: "),
    ({"clients": [{"client_id": "c", "client_secret": "short"}]}, "clients[0].client_secret: "),
    ({"clients": [{"client_id": "c", "profile": "loose"}]}, "clients[0].profile: "),
    ({"clients": [{"client_id": "c", "redirect_hosts": ["ok.com", "https://x"]}]}, "clients[0].redirect_hosts[1]: "),
    ({"clients": [{"client_id": "c", "redirect_hosts": ["UPPER.com"]}]}, "clients[0].redirect_hosts[0]: "),
    ({"clients": [{"client_id": "c", "redirect_hosts": ["*.example.com"]}]}, "clients[0].redirect_hosts[0]: "),
    ({"clients": [{"client_id": "c", "secret_sealed": "x"}]}, "clients[0].secret_sealed: "),
    ({"users": [OK_USER, {"login": "b@x"}, {"login": "OK@Example.com"}]}, "users[2].login: appears twice"),
    (
        {"users": [OK_USER, {"login": "b@x", "user_id": "5"}, {"login": "c@x", "user_id": "5"}]},
        "users[2].user_id: appears twice",
    ),
    ({"clients": [{"client_id": "c"}, {"client_id": "d"}, {"client_id": "c"}]}, "clients[2].client_id: appears twice"),
    ({"users": [OK_USER], "user": []}, "user: unknown section"),
    ({"Users": []}, "Users: unknown section"),
]


@pytest.mark.parametrize(("document", "where"), WRONG, ids=[f"{at}-{where}" for at, (_, where) in enumerate(WRONG)])
def test_invalid_document_is_refused_with_its_location(document: dict[str, Any], where: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse(document)
    assert str(caught.value).startswith(where)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("document", [[], "text", 5, None, True])
def test_document_must_be_an_object(document: object) -> None:
    with pytest.raises(FieldError, match=r"^the document: "):
        parse(document)


LISTS = ["users", "clients", "applications", "projects", "permissions", "groups", "memberships", "access_keys"]


@pytest.mark.parametrize(("section", "empty"), [("schemas", {}), ("roles", {}), *((name, []) for name in LISTS)])
def test_every_documented_section_is_accepted(section: str, empty: object) -> None:
    parse({section: empty})


def test_error_does_not_repeat_a_secret() -> None:
    for part in ({"password": "hunter2" * 200}, {"totp_secret": "hunter2"}, {"password": ["hunter2"]}):
        with pytest.raises(FieldError) as caught:
            parse({"users": [OK_USER | part]})
        assert "hunter2" not in str(caught.value)
    with pytest.raises(FieldError) as caught:
        parse({"clients": [{"client_id": "c", "client_secret": "hunter2"}]})
    assert "hunter2" not in str(caught.value)


def test_empty_document_is_accepted() -> None:
    assert parse({}) == parse({"users": [], "clients": []})
