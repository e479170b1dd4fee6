"""The clients and roles of a realm export of Keycloak move in, and its users get their roles."""

import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.kit.browser import query
from tests.kit.oauth import TOKEN, Site
from tests.kit.server import Server

EXAMPLE = Path(__file__).parents[2] / "examples" / "moving_in" / "keycloak-realm.json"
GUIDE = Path(__file__).parents[2] / "docs" / "moving_in.rst"
APPLICATION = 4712
SECRET = "uEyvHYj2mGvM1d0vWrQ4xNq7bTzK3cPs"
# What is left out, by name. Everything else that the example has is taken over.
NOTES = [
    "client forum: the implicit flow",
    "client forum: the grant type password",
    "client forum: the redirect URI 'https://forum.example.com/beta/*' is left out: a wildcard",
    "client forum: the redirect URI 'tanks://signed-in' is left out: expected an absolute http or https URI",
    "client forum: the address after a sign-out 'https://forum.example.com/bye/*' is left out",
    "client forum: its service has the rights of the application 4712",
    "client forum: protocol mappers are left out: clan",
    "client tanks-app: the web origin '*' is left out",
    "client stats: its secret is not in the export",
    "client https://wiki.example.com/saml: not carried over: its protocol is saml",
    "client leaderboard: not carried over: it only receives tokens",
    "role 'default' is left out: everybody would have",
    "client scopes are left out: inventory",
    "identityProviders is left out: add them with `sso idp add`",
    "passwordPolicy is left out",
]


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


def test_realm_of_the_guide_moves_in(server: Server, tmp_path: Path) -> None:
    document, mapping, file = tmp_path / "state.json", tmp_path / "map.json", tmp_path / "realm.json"
    file.write_text(EXAMPLE.read_text().replace("@keycloak.example", "@moved.example"))
    command = ("import", "realm", str(file), "--application-id", str(APPLICATION))
    assert "$ sso import realm examples/moving_in/keycloak-realm.json --application-id 10" in GUIDE.read_text()
    before = clients_of(server)
    tried = server.sso(*command, "--dry-run")
    assert clients_of(server) == before
    assert "client.create forum: new" in tried.stdout
    written = server.sso(*command, "--document", str(document))
    assert clients_of(server) == before
    assert stat.S_IMODE(document.stat().st_mode) == 0o600
    assert "would create 8," in server.sso("apply", "--dry-run", str(document)).stdout
    done = server.sso(*command, "--map", str(mapping))
    first, *lines = done.stdout.splitlines()
    assert first == "created 8"  # the application, three clients and four roles
    assert len(lines) == len(NOTES)
    for line, note in zip(lines, NOTES, strict=True):
        assert line.startswith(note)
    assert written.stdout.splitlines() == lines
    assert tried.stdout.splitlines()[-len(lines) :] == lines
    assert SECRET not in tried.stdout + done.stdout + mapping.read_text()
    check_clients(server, before)
    users = ("import", "users", str(file), "--from", "keycloak", "--map", str(mapping))
    assert "not in the mapping: role realm-management/realm-admin (1)" in server.sso(*users).stdout
    assert roles_of(server, "ann@moved.example") == {"moderator", "helper", "forum_editor"}
    assert roles_of(server, "cleo@moved.example") == {"helper", "forum_editor"}
    assert roles_of(server, "bob@moved.example") == set()
    [cleo] = query(server, "SELECT tags FROM users WHERE login_key = 'cleo@moved.example'")
    assert cleo["tags"] == ["testers/leads"]
    again = server.sso(*command)
    assert again.stdout.splitlines()[0] == "created 0"
    assert "client forum: left as it is" in again.stdout
    assert "role moderator: left as it is" in again.stdout


def check_clients(server: Server, before: dict[str, Any]) -> None:
    clients = clients_of(server)
    assert clients.keys() - before.keys() == {"forum", "tanks-app", "stats"}
    forum, app, stats = clients["forum"], clients["tanks-app"], clients["stats"]
    assert (forum["name"], forum["profile"], forum["id_alg"]) == ("Tank Forum", "oidc", "ES256")
    assert forum["redirect_uris"] == ["https://forum.example.com/callback"]
    assert forum["post_logout_redirect_uris"] == ["https://forum.example.com/"]
    assert forum["backchannel_logout_uri"] == "https://forum.example.com/backchannel-logout"
    assert forum["backchannel_logout_session_required"]
    assert forum["grant_types"] == ["authorization_code", "refresh_token", "client_credentials"]
    assert (forum["application_id"], forum["first_party"]) == (APPLICATION, False)
    assert (app["secret_sealed"], app["origins"]) == (None, ["https://app.example.com"])
    assert app["redirect_uris"] == ["http://127.0.0.1/callback", "https://app.example.com/callback"]
    assert "urn:ietf:params:oauth:grant-type:device_code" in app["grant_types"]
    assert stats["disabled"]
    assert stats["secret_sealed"]
    roles = {row["name"] for row in query(server, f"SELECT name FROM roles WHERE application_id = {APPLICATION}")}
    assert roles >= {"moderator", "helper", "forum_editor", "forum_page_admin"}
    assert not roles & {"default-roles-tanks", "offline_access", "account_view-profile", "realm-management_realm-admin"}
    with server.client() as http:
        for secret, status in ((SECRET, 200), ("another-secret-0123", 401)):
            headers = Site(server, "forum", secret).basic()
            answer = http.post(TOKEN, data={"grant_type": "client_credentials"}, headers=headers)
            assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("realm", "problem"),
    [
        ("[]", "line 1: expected an object"),
        ('{"users": []}', "expected the export of a realm, with clients or roles"),
        ('{"clients": [', "line 1: expected JSON"),
    ],
)
def test_file_that_is_no_realm_is_refused(server: Server, realm: str, problem: str) -> None:
    done = server.sso("import", "realm", "-", "--application-id", "4790", "--dry-run", stdin=realm, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert problem in done.stderr


def test_odd_values_of_a_realm_are_named_and_left_out(server: Server, tmp_path: Path) -> None:
    """Names with line breaks, circles of roles, members of other types and clients that no rule allows."""
    keys = {"keys": [{"kty": "oct", "k": "AAAA"}]}
    realm = {
        "realm": 5,
        "roles": {
            "realm": [
                {"name": "a", "composites": {"realm": ["b"]}},
                {"name": "b", "composites": {"realm": ["a"], "client": 3}},
                {"name": "a b"},
                {"name": "a_b"},
                {"name": "x" * 65},
                7,
            ],
            "client": {"c": None, "d": [{"name": "\u202e"}]},
        },
        "groups": [{"name": "g," * 40}, {"name": "ok", "realmRoles": ["a", "unknown"], "subGroups": "none"}, None],
        "clients": [
            {"clientId": "bad id", "publicClient": True},
            {"clientId": "no-flow", "standardFlowEnabled": False, "directAccessGrantsEnabled": True},
            {
                "clientId": "weak-keys",
                "clientAuthenticatorType": "client-jwt",
                "attributes": {"jwks.string": orjson.dumps(keys).decode()},
            },
            {"clientId": "x509", "clientAuthenticatorType": "client-x509", "attributes": []},
            {"clientId": "bad-logout", "secret": "s" * 20, "attributes": {"backchannel.logout.url": "ftp://x"}},
        ],
    }
    document, mapping = tmp_path / "state.json", tmp_path / "map.json"
    options = ("--application-id", "4791", "--document", str(document), "--map", str(mapping))
    done = server.sso("import", "realm", "-", *options, stdin=orjson.dumps(realm).decode())
    notes = done.stdout.splitlines()
    assert len(notes) == 10, done.stdout
    state = orjson.loads(document.read_bytes())
    assert [client["client_id"] for client in state["clients"]] == ["x509"]
    assert [role["name"] for role in state["roles"]["4791"]] == ["a", "b", "a_b", "d__"]
    names = orjson.loads(mapping.read_bytes())
    assert [target["role"] for target in names["roles"]["b"]] == ["b", "a"]
    assert names["groups"]["/ok"][0] == {"tag": "ok"}
    assert server.sso("apply", "--dry-run", str(document)).returncode == 0
