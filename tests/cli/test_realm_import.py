"""The clients, roles and groups of a realm export of Keycloak move in, and its users get their roles."""

import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.conftest import Sso
from tests.kit.browser import query
from tests.kit.oauth import TOKEN, Site
from tests.kit.server import Server

EXAMPLE = Path(__file__).parents[2] / "examples" / "moving_in" / "keycloak-realm.json"
GUIDE = Path(__file__).parents[2] / "docs" / "moving_in.rst"
APPLICATION = 4712
SECRET = "uEyvHYj2mGvM1d0vWrQ4xNq7bTzK3cPs"
# What is left out, by name. Everything else that the example has is taken over.
NOTES = [
    "client forum: its service account is left out: --services",
    "client forum: the implicit flow",
    "client forum: the grant type password",
    "client forum: the redirect URI 'https://forum.example.com/beta/*' is left out: a wildcard",
    "client forum: the redirect URI 'tanks://signed-in' is left out: expected an absolute http or https URI",
    "client forum: the address after a sign-out 'https://forum.example.com/bye/*' is left out",
    "client forum: protocol mappers are left out: clan",
    "client forum: attributes are left out: access.token.lifespan",
    "client tanks-app: the web origin '*' is left out",
    "client stats: its secret is not in the export, so it gets a new one",
    "client wiki: its secret cannot be used here (client_secret: must have a length of at least 16), so it gets",
    "client wiki: the redirect URI 'http://studio.example.com/wiki/old' is left out: expected https",
    "client matchmaker: its service account is left out: --services",
    "client matchmaker: not carried over: it has no flow that is taken over",
    "client matchmaker: the roles of its service account are left out: helper, realm-management/view-users",
    "client https://wiki.example.com/saml: not carried over: its protocol is saml",
    "client leaderboard: not carried over: it only receives tokens",
    "role default: left out: everybody would have",
    "clientScopes: left out: inventory",
    "groups: they become tags of their members; with --project,",
    "identityProviders: left out: add them with `sso idp add`",
    "passwordPolicy: left out",
]


@pytest.fixture(scope="module")
def environment(server: Server) -> dict[str, str]:
    return server.settings


def clients_of(server: Server) -> dict[str, dict[str, Any]]:
    return {row["client_id"]: dict(row) for row in query(server, "SELECT * FROM oauth_clients")}


def roles_of(server: Server, login: str) -> set[str]:
    rows = query(
        server,
        "SELECT name FROM role_assignments JOIN users USING (user_id) WHERE login_key = $1 AND application_id = $2",
        login,
        APPLICATION,
    )
    return {row["name"] for row in rows}


def test_realm_of_the_guide_moves_in(sso: Sso, server: Server, tmp_path: Path) -> None:
    document, mapping, file = tmp_path / "state.json", tmp_path / "map.json", tmp_path / "realm.json"
    file.write_text(EXAMPLE.read_text().replace("@keycloak.example", "@moved.example"))
    command = ("import", "realm", str(file), "--application-id", str(APPLICATION))
    assert "$ sso import realm examples/moving_in/keycloak-realm.json --application-id 10" in GUIDE.read_text()
    before = clients_of(server)
    tried = sso(*command, "--dry-run")
    assert clients_of(server) == before
    assert "client.create forum: new" in tried.output
    written = sso(*command, "--document", str(document))
    assert clients_of(server) == before
    assert stat.S_IMODE(document.stat().st_mode) == 0o600
    assert "would create 9," in sso("apply", "--dry-run", str(document)).output
    done = sso(*command, "--map", str(mapping))
    first, *lines = done.output.splitlines()
    assert first == "created 1 application, 4 clients, 4 roles"
    assert len(lines) == len(NOTES)
    for line, note in zip(lines, NOTES, strict=True):
        assert line.startswith(note)
    assert written.output.splitlines() == lines
    assert tried.output.splitlines()[-len(lines) :] == lines
    assert SECRET not in tried.output + done.output + mapping.read_text()
    check_clients(server, before)
    users = ("import", "users", str(file), "--from", "keycloak", "--map", str(mapping))
    assert "not in the mapping: role realm-management/realm-admin (1)" in sso(*users).output
    assert roles_of(server, "ann@moved.example") == {"moderator", "helper", "forum_editor"}
    assert roles_of(server, "cleo@moved.example") == {"helper", "forum_editor"}
    assert roles_of(server, "bob@moved.example") == set()
    [cleo] = query(server, "SELECT tags FROM users WHERE login_key = 'cleo@moved.example'")
    assert cleo["tags"] == ["testers/leads"]
    after = clients_of(server)
    again = sso(*command)
    assert again.output.splitlines()[0] == "created nothing"
    notes = [line for line in again.output.splitlines() if line.startswith("client stats")]
    assert notes == ["client stats: left as it is, because there is one already"]  # its secret is not new
    assert "role moderator: left as it is" in again.output
    assert clients_of(server) == after


def test_services_and_groups_of_a_realm_are_imported_on_request(sso: Sso, server: Server, tmp_path: Path) -> None:
    file, mapping = tmp_path / "realm.json", tmp_path / "map.json"
    text = EXAMPLE.read_text().replace("@keycloak.example", "@grouped.example")
    for client_id in ("forum", "tanks-app", "stats", "wiki", "matchmaker"):
        text = text.replace(f'"clientId": "{client_id}"', f'"clientId": "{client_id}-2"')
    file.write_text(text.replace('"serviceAccountClientId": "', '"serviceAccountClientId": "2-'))
    command = ("import", "realm", str(file), "--application-id", "4713", "--project", "realm_groups")
    refused = sso(*command, "--services", "4713")
    assert (refused.code, refused.out) == (2, "")
    assert "--services: expected another application" in refused.err
    missing = sso(*command)
    assert (missing.code, missing.out) == (1, "")
    assert "there is no project realm_groups" in missing.err
    assert sso("project", "add", "realm groups").code == 0
    done = sso(*command, "--services", "4714", "--map", str(mapping))
    assert done.output.splitlines()[0] == "created 2 applications, 5 clients, 4 roles, 2 groups"
    assert "client matchmaker-2: its service has the rights of the application 4714" in done.output
    clients = clients_of(server)
    assert clients["matchmaker-2"]["grant_types"] == ["client_credentials"]
    assert {clients[name]["application_id"] for name in ("matchmaker-2", "forum-2")} == {4714}
    assert sso("import", "users", str(file), "--from", "keycloak", "--map", str(mapping)).code == 0
    again = sso(*command, "--services", "4714")
    assert again.output.splitlines()[0] == "created nothing"
    assert "group /testers/leads: left as it is" in again.output
    groups = query(server, "SELECT title, conditions FROM user_groups WHERE project_id = 'realm_groups' ORDER BY title")
    tags = {row["title"]: [item["condition"]["tag"] for item in conditions_of(row)] for row in groups}
    assert tags == {"testers": ["testers", "testers/leads"], "testers leads": ["testers/leads"]}


def conditions_of(row: Any) -> Any:
    value = row["conditions"]
    return orjson.loads(value) if isinstance(value, str) else value


def check_clients(server: Server, before: dict[str, Any]) -> None:
    clients = clients_of(server)
    assert clients.keys() - before.keys() == {"forum", "tanks-app", "stats", "wiki"}
    forum, app, stats, wiki = (clients[name] for name in ("forum", "tanks-app", "stats", "wiki"))
    assert (forum["name"], forum["profile"], forum["id_alg"]) == ("Tank Forum", "oidc", "ES256")
    assert forum["redirect_uris"] == ["https://forum.example.com/callback"]
    assert forum["post_logout_redirect_uris"] == ["https://forum.example.com/"]
    assert forum["backchannel_logout_uri"] == "https://forum.example.com/backchannel-logout"
    assert forum["backchannel_logout_session_required"]
    assert forum["grant_types"] == ["authorization_code", "refresh_token"]
    assert (forum["application_id"], forum["first_party"]) == (0, False)
    assert wiki["redirect_uris"] == wiki["post_logout_redirect_uris"] == ["https://studio.example.com/wiki/callback"]
    assert wiki["backchannel_logout_uri"] == "https://studio.example.com/wiki/logout"
    assert wiki["grant_types"] == ["authorization_code"]
    assert (app["secret_sealed"], app["origins"]) == (None, ["https://app.example.com"])
    assert app["redirect_uris"] == ["http://127.0.0.1/callback", "https://app.example.com/callback"]
    assert "urn:ietf:params:oauth:grant-type:device_code" in app["grant_types"]
    assert stats["disabled"]
    assert stats["secret_sealed"]
    roles = {row["name"] for row in query(server, f"SELECT name FROM roles WHERE application_id = {APPLICATION}")}
    assert roles >= {"moderator", "helper", "forum_editor", "forum_page_admin"}
    assert roles <= {"moderator", "helper", "forum_editor", "forum_page_admin", "default"}
    with server.client() as http:
        for secret, error in ((SECRET, "unauthorized_client"), ("another-secret-0123", "invalid_client")):
            headers = Site(server, "forum", secret).basic()
            answer = http.post(TOKEN, data={"grant_type": "client_credentials"}, headers=headers)
            assert answer.json()["error"] == error, answer.text


@pytest.mark.parametrize(
    ("realm", "problem"),
    [
        ("[]", "line 1: expected an object"),
        ('{"users": []}', "expected the export of a realm, with clients or roles"),
        ('{"clients": [', "line 1: expected JSON"),
        ("{[1]: 1}", "line 1: expected the name of a member in quotation marks"),
        (f'{{"realm": {"1" * 5000}}}', "line 1: expected JSON"),
        ('{"clients": {"forum": {}}}', "<stdin>: clients: must be an array"),
        ('{"clients": [["forum"]]}', "clients[0]: must be an object"),
        ('{"clients": [{}]}', "clients[0].clientId: is required"),
        ('{"clients": [{"clientId": 7}]}', "clients[0].clientId: must be a string"),
        ('{"clients": [{"clientId": "a", "redirectUris": "/cb"}]}', "clients[0].redirectUris: must be an array"),
        ('{"clients": [{"clientId": "a", "redirectUris": [{}]}]}', "clients[0].redirectUris[0]: must be a string"),
        ('{"clients": [{"clientId": "a", "publicClient": "true"}]}', "clients[0].publicClient: must be true or false"),
        ('{"clients": [{"clientId": "a", "attributes": []}]}', "clients[0].attributes: must be an object"),
        ('{"clients": [{"clientId": "a", "attributes": {"b.c": []}}]}', "attributes: 'b.c' must be a string"),
        ('{"clients": [], "realm": 5}', "realm: must be a string"),
        ('{"clients": [], "realm": "a\\u0000"}', "realm: must be Unicode text without a NUL character"),
        ('{"roles": []}', "roles: must be an object"),
        ('{"roles": {"realm": [7]}}', "roles.realm[0]: must be an object"),
        ('{"roles": {"client": {"forum": {}}}}', "roles.client.forum: must be an array"),
        ('{"roles": {"realm": [{"name": "a", "composites": {"client": 3}}]}}', "composites.client: must be an object"),
        ('{"clients": [], "groups": [{"name": "g", "subGroups": "h"}]}', "groups[0].subGroups: must be an array"),
        ('{"clients": [{"clientId": "\\ud800"}]}', "clients[0].clientId: must be Unicode text"),
        ('{"roles": {"client": {"\\ud800": []}}}', "roles.client: must be Unicode text"),
    ],
)
def test_file_that_is_no_realm_is_refused(sso: Sso, realm: str, problem: str) -> None:
    done = sso("import", "realm", "-", "--application-id", "4790", "--dry-run", stdin=realm)
    assert (done.code, done.out) == (1, "")
    assert problem in done.err


def converted(realm: dict[str, Any], tmp_path: Path, sso: Sso) -> tuple[Any, Any, list[str]]:
    """Returns the document, the mapping and the notes."""
    document, mapping = tmp_path / "state.json", tmp_path / "map.json"
    arguments = ("--application-id", "4791", "--document", str(document), "--map", str(mapping))
    done = sso("import", "realm", "-", *arguments, stdin=orjson.dumps(realm).decode())
    assert sso("apply", "--dry-run", str(document)).code == 0
    return orjson.loads(document.read_bytes()), orjson.loads(mapping.read_bytes()), done.output.splitlines()


def test_odd_roles_and_groups_of_a_realm_are_named_and_left_out(sso: Sso, tmp_path: Path) -> None:
    realm = {
        "roles": {
            "realm": [
                {"name": "a", "composites": {"realm": ["b"]}},
                {"name": "b", "composites": {"realm": ["a"], "client": None}},
                {"name": "a b"},
                {"name": "a_b"},
                {"name": "x" * 65},
            ],
            "client": {"d": [{"name": "\u202e"}]},
        },
        "groups": [
            {"name": "g," * 40, "realmRoles": ["a_b"]},
            {"name": "ok", "realmRoles": ["a", "unknown"]},
            {"name": "p,q"},
            {"name": "p_q", "attributes": {"level": ["1"]}},
        ],
    }
    state, names, notes = converted(realm, tmp_path, sso)
    assert [role["name"] for role in state["roles"]["4791"]] == ["a", "b", "a_b", "d__"]
    assert [target["role"] for target in names["roles"]["b"]] == ["b", "a"]
    assert names["groups"]["/ok"][0] == {"tag": "ok"}
    assert names["groups"][f"/{'g,' * 40}"] == [{"application_id": 4791, "role": "a_b"}]
    assert (names["groups"]["/p,q"], names["groups"]["/p_q"]) == ([{"tag": "p_q"}], [])
    assert [note.rpartition(": ")[2] for note in notes[:-1]] == [
        "another role is a_b here",
        "a name has 1 to 64 letters, digits, _ and -",
        "a tag has at most 64 printable characters",
        "another group has become 'p_q'",
        "its attributes are left out",
    ]


@pytest.mark.parametrize("realm", ["tanks", "master"])
def test_roles_that_keycloak_has_created_are_left_out(sso: Sso, tmp_path: Path, realm: str) -> None:
    """Roles and clients of the same kinds of names that a studio has created are taken over."""
    state, names, notes = converted(
        {
            "realm": realm,
            "defaultRole": {"name": "everyone"},
            "roles": {
                "realm": [
                    {"name": "everyone", "composites": {"realm": ["player"]}},
                    *({"name": name} for name in ("player", f"default-roles-{realm}", "default-roles-of-guilds")),
                    *({"name": name} for name in ("offline_access", "uma_authorization", "admin", "create-realm")),
                ],
                "client": {
                    name: [{"name": "manage-users"}]
                    for name in ("account", "broker", "realm-management", "admin-cli", "tanks-realm", "account-shop")
                }
                | {"shop": [{"name": "uma_protection"}]},
            },
            "clients": [{"clientId": "tanks-realm", "bearerOnly": True}, {"clientId": "broker"}],
            "components": {"org.keycloak.storage.UserStorageProvider": [{"name": "ldap"}]},
            "defaultGroups": ["/testers"],
        },
        tmp_path,
        sso,
    )
    own = ["player", "default-roles-of-guilds", "account-shop_manage-users"]
    if realm != "master":
        own += ["admin", "create-realm", "tanks-realm_manage-users"]
        assert notes[0] == "client tanks-realm: not carried over: it only receives tokens, and needs no client here"
    assert sorted(role["name"] for role in state["roles"]["4791"]) == sorted(own)
    assert notes[-3:] == [
        "role everyone: users who register here do not get player",
        "components: user federation is left out: import its users from a file",
        "defaultGroups: left out: users who register here get neither their tags nor their roles",
    ]
    assert names["roles"]["everyone"] == [{"application_id": 4791, "role": "player"}]
    assert "realm-management/manage-users" not in names["roles"]
    assert ("admin" in names["roles"]) is (realm != "master")


def test_clients_of_a_realm_keep_what_can_be_kept(sso: Sso, tmp_path: Path) -> None:
    keys = {"keys": [{"kty": "oct", "k": "AAAA"}]}
    uris = ["https://a.example/cb"]
    attributes = {
        "weak-keys": {"jwks.string": orjson.dumps(keys).decode()},
        "no-logout": {"backchannel.logout.url": "ftp://x", "post.logout.redirect.uris": "-"},
        "same": {"post.logout.redirect.uris": "+##https://a.example/bye##/bye", "use.refresh.tokens": False},
        "flags": {
            "acr.loa.map": "{}",
            "request.object.required": "not required",
            "tls.client.certificate.bound.access.tokens": "true",
            "realm_client": "false",
        },
    }
    clients: dict[str, dict[str, object]] = {
        "bad id": {"publicClient": True},
        "no-flow": {"standardFlowEnabled": False, "directAccessGrantsEnabled": True},
        "weak-keys": {"clientAuthenticatorType": "client-jwt"},
        "x509": {"clientAuthenticatorType": "client-x509"},
        "vault": {"secret": "${vault.forum-secret}"},
        "no-logout": {},
        "same": {"rootUrl": "https://a.example/shop/"},
        "flags": {"redirectUris": ["/cb"]},
    }
    common = {"secret": "s" * 20, "redirectUris": uris}
    listed = [
        {"clientId": name, **common, "attributes": attributes.get(name), **fields} for name, fields in clients.items()
    ]
    state, _, notes = converted({"clients": listed}, tmp_path, sso)
    records = {client["client_id"]: client for client in state["clients"]}
    assert list(records) == ["x509", "vault", "no-logout", "same", "flags"]
    assert notes == [
        "client bad id: not carried over: client_id: must be 1 to 64 letters, digits, dots, dashes, underscores",
        "client no-flow: the grant type password does not exist here: users sign in on the pages of the service",
        "client no-flow: not carried over: it has no flow that is taken over",
        *(note for note in notes if note.startswith("client weak-keys: not carried over: jwks: ")),
        "client x509: it authenticates with client-x509, which does not exist here, so it gets a secret",
        "client vault: its secret is in a vault of Keycloak, so it gets a new one: `sso client rotate-secret` prints "
        "another",
        "client no-logout: after a sign-out, it may return to the origins of its redirect URIs; in Keycloak, it "
        "returned nowhere",
        "client no-logout: the address of the back-channel logout 'ftp://x' is left out: expected an https address, or "
        "http for this machine",
        "client flags: the redirect URI '/cb' is left out: it is relative, and the client has no rootUrl",
        "client flags: attributes are left out: tls.client.certificate.bound.access.tokens",
        "client flags: nobody can sign in there yet: add a redirect URI with `sso client set`",
    ]
    assert "vault" not in records["vault"]["client_secret"]
    assert records["same"]["post_logout_redirect_uris"] == [
        *uris,
        "https://a.example/bye",
        "https://a.example/shop/bye",
    ]
    assert records["same"]["grant_types"] == ["authorization_code"]
    assert "post_logout_redirect_uris" not in records["no-logout"]


def test_dry_run_with_document_is_refused(sso: Sso, tmp_path: Path) -> None:
    document = tmp_path / "state.json"
    options = ("--application-id", "4791", "--dry-run", "--document", str(document))
    done = sso("import", "realm", str(EXAMPLE), *options)
    assert (done.code, done.out, document.exists()) == (2, "", False)
    assert "--document changes nothing: leave out --dry-run" in done.err
