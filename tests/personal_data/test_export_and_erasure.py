"""What an export contains, and that an erasure leaves nothing of it behind."""

import json
from typing import Any

import pytest
from sqlalchemy import DateTime, LargeBinary
from sqlalchemy.dialects.postgresql import JSONB

from sso.core.errors import NotFound
from sso.db.tables import metadata
from sso.personal_data.export import export_user
from sso.personal_data.export_store import JSON_COLUMNS, TIME_COLUMNS
from sso.personal_data.tables import EXPORTED, KEPT_WITHOUT_PERSONAL_DATA, PSEUDONYMOUS, TRANSIENT, WITHOUT_FOREIGN_KEY
from sso.services import Services
from tests.kit.browser import Browser, fresh_browser, query, user_id_of
from tests.kit.builders import PASSWORD
from tests.kit.server import Server
from tests.personal_data.conftest import api_login, is_erased, make_due, unique_user

APPLICATION = 800_201
COLUMNS = """SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
    AND (data_type IN ('text', 'jsonb', 'ARRAY') OR data_type LIKE 'char%')"""


@pytest.fixture
def login(server: Server) -> str:
    """A user with rows in every table of an export, and with entries in the audit trail."""
    login = unique_user(server, country="AT", phone="+43 1 234", meta={"colour": "green"})
    user_id = user_id_of(server, login)
    project, group = f"p{user_id}", f"{int(user_id):024x}"
    member = {"user_id": user_id, "roles": {"project": ["viewer"]}}
    server.apply(
        {
            "applications": [{"application_id": APPLICATION, "name": "Blue Dusk"}],
            "schemas": {str(APPLICATION): {}},
            "roles": {str(APPLICATION): [{"name": "player", "meta": {}}]},
            "permissions": [{"user_id": login, "application_id": APPLICATION, "data": {"roles": ["player"]}}],
            "projects": [{"id": project, "title": f"Project {user_id}"}],
            "groups": [{"group_id": group, "project_id": project, "title": "Friends", "users": [user_id]}],
            "memberships": [{"id": project, "users": [member]}],
        }
    )
    server.apply({"users": [{"login": login, "tags": ["friend"]}]})
    api_login(server, login)
    with fresh_browser(server, login, headers={"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/130.0"}) as browser:
        browser.open_account()
        new = {"current_password": PASSWORD, "new_password": "a longer and better one"}
        assert browser.submit("/account/password", **new, repeat_password=new["new_password"]).status_code == 303
    server.sso("user", "set-password", login, "--password-stdin", stdin=f"{PASSWORD}\n")
    api_login(server, login)
    rows = {
        "known_factors": "(digest, user_id, expires) VALUES (sha256($1::bytea), $2, now() + interval '1 day')",
        "passkeys": """(id, credential_id, user_id, public_key, sign_count, name)
            VALUES (md5($1), $1::bytea, $2, 'secret', 0, 'Phone')""",
        "recovery_code_sets": "(user_id, key_sealed) VALUES ($2, $1)",
        "oauth_clients": "(client_id, name) VALUES ($1, 'Site ' || $2)",
        "oauth_consents": "(user_id, client_id, scopes) VALUES ($2, $1, '{openid}')",
        "oauth_grants": """(id, client_id, user_id, auth_time, issued, ends, last_used, expires, claims)
            VALUES ($1, $1, $2, 0, 0, 0, now(), now() + interval '1 day', '{"id_token":{"email":null}}')""",
        "identity_providers": "(provider_id, kind) VALUES ($1, 'steam')",
        "linked_identities": """(id, provider_id, subject, user_id, name, last_used)
            VALUES ($1, $1, 's' || $1, $2, 'Ann S', now())""",
        "mailed_links": "(digest, purpose, user_id, expires) VALUES ($1::bytea, 'test', $2, now() + interval '1 day')",
    }  # fmt: skip
    for table, values in rows.items():
        query(server, f"WITH given AS (SELECT $1::text, $2::text) INSERT INTO {table} {values}", f"c{user_id}", user_id)
    return login


def test_every_table_with_a_user_id_is_known() -> None:
    """A new table must be exported or be listed with the reason why it is not; and an erasure must reach it."""
    with_user = {table.name: table for table in metadata.tables.values() if "user_id" in table.c}
    assert set(with_user) == {"users", *EXPORTED, *TRANSIENT, *PSEUDONYMOUS}
    for name, table in with_user.items():
        if name not in ("users", *PSEUDONYMOUS, *WITHOUT_FOREIGN_KEY, *KEPT_WITHOUT_PERSONAL_DATA):
            (key,) = table.c.user_id.foreign_keys
            assert key.ondelete == "CASCADE", name
    for name, columns in EXPORTED.items():
        for column in columns:
            found = metadata.tables[name].c[column]
            assert not found.info.get("sealed"), f"{name}.{column} is a secret"
            assert not isinstance(found.type, LargeBinary), f"{name}.{column} may be a secret"
            assert (column in TIME_COLUMNS) == isinstance(found.type, DateTime), f"{name}.{column}"
            assert (column in JSON_COLUMNS) == isinstance(found.type, JSONB), f"{name}.{column}"


def exported_by_page(server: Server, login: str) -> Any:
    with fresh_browser(server, login) as browser:
        browser.open_account()
        answer = browser.submit("/account/export")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="account-data.json"'
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Type"] == "application/json"
        return answer.json()


def test_export_contains_what_is_stored_and_no_secrets(server: Server, login: str) -> None:
    """By the page and by the command. The addresses of administrators are not for the user."""
    insert = """INSERT INTO audit (user_id, address, operation, target, after)
        VALUES ($1, $2, 'user.update', $3, '{"nick": "Ann"}')"""
    user_id = user_id_of(server, login)
    query(server, insert, "1", "203.0.113.77", user_id)
    query(server, insert, user_id, "203.0.113.78", user_id)
    document = exported_by_page(server, login)
    account = document["account"]
    assert (account["login"], account["country"], account["meta"]) == (login, "AT", {"colour": "green"})
    assert document["sign_in"]["passkeys"][0]["name"] == "Phone"
    assert document["sign_in"]["linked_identities"][0]["name"] == "Ann S"
    assert document["permissions"]["roles"] == [
        {"application_id": APPLICATION, "name": "player", "expired": 0, "ttl": 0}
    ]
    assert document["permissions"]["memberships"][0]["role"] == "viewer"
    created, *_, tagged = reversed(document["permissions"]["history"])
    assert (created["kind"], created["before"]) == ("users", None)
    assert tagged["before"] == {
        "user_id": account["user_id"],
        "login": login,
        "tags": [],
        "purchases": [],
        "bans": None,
    }
    assert document["permissions"]["groups"] == [{"group_id": f"{int(account['user_id']):024x}"}]
    assert document["sites"]["consents"][0]["name"] == f"Site {account['user_id']}"
    assert json.loads(document["sites"]["grants"][0]["claims"]) == {"id_token": {"email": None}}
    kinds = [event["kind"] for event in document["history"]]
    assert kinds == ["signed_in", "signed_in", "password_changed", "password_changed", "signed_in", "signed_in",
                     "data_exported"]  # fmt: skip
    assert {entry["operation"] for entry in document["audit"]} >= {
        "user.create",
        "user.save",
        "permissions.save",
    }
    text = json.dumps(document)
    stored = query(server, "SELECT password_hash FROM users WHERE login = $1", login)[0]["password_hash"]
    assert "secret" not in text.replace("secret_data", "")
    for secret in (stored, PASSWORD, "argon2", "203.0.113.77"):
        assert secret not in text
    assert "203.0.113.78" in text
    by_command = json.loads(server.sso("user", "export", login).stdout)
    assert by_command.keys() == document.keys()
    for name in ("account", "sign_in", "sites", "permissions", "audit"):
        assert by_command[name] == document[name]
    assert by_command["history"][-1]["detail"] == {"by": "support"}
    assert server.sso("user", "export", "nobody@example.com", check=False).returncode == 1


def test_export_contains_the_data_of_merged_users(server: Server, login: str) -> None:
    first, middle = user_id_of(server, login), user_id_of(server, unique_user(server))
    last_login = unique_user(server)
    last = user_id_of(server, last_login)
    for user_id, into in ((first, middle), (middle, last)):
        server.sso("user", "merge", user_id, into, "--yes")
    document = exported_by_page(server, last_login)
    assert [one["account"]["user_id"] for one in document["merged_users"]] == sorted([first, middle])
    data = next(one for one in document["merged_users"] if one["account"]["user_id"] == first)
    assert data["account"]["login"] == login
    assert data["sign_in"]["passkeys"][0]["name"] == "Phone"
    assert "password_changed" in {event["kind"] for event in data["history"]}
    assert {*document} - {*data} == {"exported_at", "merged_users"}
    (merge,) = document["sign_in"]["merges"]
    assert (merge["user_id"], merge["into_id"]) == (middle, last)
    assert [(one["user_id"], one["into_id"]) for one in data["sign_in"]["merges"]] == [(first, middle)]


def test_exports_of_one_user_are_limited(server: Server) -> None:
    with fresh_browser(server, unique_user(server)) as browser:
        browser.open_account()
        form = browser.form("/account/export")
        answers = [browser.post("/account/export", form) for _ in range(6)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429]
        assert int(answers[5].headers["Retry-After"]) > 600
        assert 'role="alert"' in answers[5].text


def places_of(server: Server, text: str) -> set[str]:
    """The columns of the whole database that contain the text."""
    selects = (
        f"""SELECT '{table}.{column}' WHERE EXISTS (SELECT FROM "{table}" WHERE position($1 IN "{column}"::text) > 0)"""
        for table, column in query(server, COLUMNS)
    )
    return {row[0] for row in query(server, " UNION ALL ".join(selects), text)}


def test_erasure_leaves_nothing_but_the_number_of_the_user(server: Server, login: str) -> None:
    user_id, name = user_id_of(server, login), login.partition("@")[0]
    address = f"198.51.100.{int(user_id) % 250}"
    query(server, "UPDATE account_events SET address = $2 WHERE user_id = $1", user_id, address)
    query(server, """INSERT INTO audit (user_id, address, operation, target, after)
        VALUES ($1, $2, 'group.save', 'g', jsonb_build_object('note', 'by ' || $3::text, 'n', 1))""",
          user_id, address, login)  # fmt: skip
    kept = f"kept-by-{user_id}"
    query(server, "INSERT INTO audit (operation, target, after) VALUES ('application.save', $1, to_jsonb($2::text))",
          user_id, kept)  # fmt: skip
    assert {"users.login", "users.nick", "audit.after", "permission_versions.image"} <= places_of(server, name)
    assert places_of(server, address) >= {"account_events.address", "audit.address"}
    server.sso("user", "delete", login, "--yes")
    make_due(server, login)
    assert is_erased(server, login)
    assert places_of(server, name) == set()
    assert places_of(server, address) == set()
    assert places_of(server, kept) == {"audit.after"}  # an application with the same number is someone else's
    ids = {table for table in EXPORTED | dict.fromkeys(TRANSIENT)
           if query(server, f"SELECT FROM {table} WHERE user_id = $1", user_id)}  # fmt: skip
    assert not query(server, "SELECT FROM permission_versions WHERE owner = $1 AND kind LIKE '%user%'", user_id)
    assert ids == {"change_events"}
    (event,) = query(server, "SELECT type, data FROM change_events WHERE user_id = $1", user_id)
    assert (event["type"], event["data"]) == ("user_erased", "{}")  # programs with a copy must learn it
    assert query(server, "SELECT FROM erased_users WHERE user_id = $1", user_id)
    entries = query(server, "SELECT operation, after FROM audit WHERE target = $1 AND operation LIKE 'user.%'", user_id)
    assert {entry["after"] for entry in entries} == {'{"erased": true}'}
    assert "user.erase" in {entry["operation"] for entry in entries}
    note = query(server, "SELECT after FROM audit WHERE user_id = $1 AND operation = 'group.save'", user_id)[0]
    assert json.loads(note["after"]) == {"note": "by erased", "n": 1}


def test_erasure_leaves_nothing_of_users_who_were_merged_by_way_of_others(server: Server, login: str) -> None:
    first, middle, last = [user_id_of(server, name) for name in (login, unique_user(server), unique_user(server))]
    for user_id, into in ((first, middle), (middle, last)):
        server.sso("user", "merge", user_id, into, "--yes")
    change = "INSERT INTO change_events (type, user_id, data) VALUES ('user_updated', $1, to_jsonb($2::text))"
    query(server, change, first, login)
    server.sso("user", "delete", last, "--now", "--yes")
    assert places_of(server, login.partition("@")[0]) == set()
    erased = query(server, "SELECT user_id FROM erased_users WHERE user_id = ANY ($1)", [first, middle, last])
    assert {row["user_id"] for row in erased} == {first, middle, last}
    events = query(server, "SELECT user_id, type FROM change_events WHERE user_id = ANY ($1)", [first, middle, last])
    assert sorted(map(tuple, events)) == sorted((user_id, "user_erased") for user_id in (first, middle, last))


def test_erasure_leaves_similar_logins_in_the_audit_trail_and_ends_sessions(server: Server) -> None:
    """Whoever deletes an account must not change what the audit trail says about others."""
    login = unique_user(server)
    others = [f"x{login}", f"x.{login}", f"x+{login}", f"{login}.au", f"{login}x"]
    names = [*others, f"by {login}.", f"line\n{login}", f"<{login}>"]
    for target in (*others, login.upper()):
        query(server, "INSERT INTO audit (operation, target, after) VALUES ('user.lookup', $1, $2::jsonb)",
              target, json.dumps(names))  # fmt: skip
    with fresh_browser(server, login) as browser, Browser(server) as other:
        server.sso("user", "delete", login, "--now", "--yes")
        assert not browser.is_signed_in
        assert other.sign_in(login).status_code == 401
    rows = query(server, "SELECT target, after FROM audit WHERE after @> $1::jsonb ORDER BY id", json.dumps(others))
    assert [row["target"] for row in rows] == [*others, "erased"]
    for row in rows:
        assert json.loads(row["after"]) == [*others, "by erased.", "line\nerased", "<erased>"]


async def test_export_of_an_erased_user_is_not_found(services: Services) -> None:
    with pytest.raises(NotFound):
        await export_user(services.database, "987654321")
