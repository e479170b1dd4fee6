"""Commands that help users and find causes have the same output on the machine of the service and on a server."""

from pathlib import Path

import orjson

from tests.cli.both_forms import Both, Execute, beside, both, execute, signed_in
from tests.cli.conftest import Sso
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server

__all__ = ["beside", "both", "execute", "signed_in"]


def test_invitations(both: Both) -> None:
    for line in (
        "user invitations",
        "user invite new@example.com --days 3 --lang de",
        "user invite new@example.com",
        "user invite other@example.com",
        "user invite Ann@Example.com",
        "user invite nobody",
        "user invite new@example.com --days 0",
        "user invitations",
        "user invitations --json",
        "user invitations --revoke New@Example.com",
        "user invitations --revoke new@example.com",
        "user invitations --revoke unknown",
        "user invitations",
    ):
        result = both(line)
        if line == "user invitations --revoke New@Example.com":
            assert result.lines == ["2 revoked"]
    assert "other@example.com" in both("user invitations").out
    assert both("user invitations --revoke other@example.com").lines == ["1 revoked"]


def test_blocked_factors(both: Both, execute: Execute, tmp_path: Path) -> None:
    user = {"login": "blocked@example.com", "user_id": "7001", "password": PASSWORD, "totp_secret": TOTP_SECRET}
    (tmp_path / "user.json").write_bytes(orjson.dumps({"users": [user]}))
    assert both(f"apply {tmp_path / 'user.json'}").code == 0
    execute("INSERT INTO factor_guesses (user_id, factor, attempts) VALUES ('7001', 'totp', 20)")
    assert "blocked_factors" in both("user show blocked@example.com").out
    assert both("user unblock-2fa blocked@example.com").code == 0
    assert "blocked_factors" not in both("user show 7001").out
    assert both("user unblock-2fa nobody@example.com").code == 1


def test_export_and_erasure_of_a_user(both: Both, signed_in: tuple[Server, Path], sso: Sso, tmp_path: Path) -> None:
    user = {"login": "leaving@example.com", "user_id": "7002", "password": PASSWORD}
    (tmp_path / "user.json").write_bytes(orjson.dumps({"users": [user]}))
    assert both(f"apply {tmp_path / 'user.json'}").code == 0
    server = signed_in[0]
    exported = (
        server.sso("user", "export", "7002").stdout,
        sso("--server", server.base_url, "user", "export", "7002").out,
    )
    documents = [orjson.loads(text) for text in exported]
    assert documents[0].keys() == documents[1].keys()
    assert documents[0]["account"].keys() == documents[1]["account"].keys()
    assert [document["account"]["login"] for document in documents] == ["leaving@example.com"] * 2
    for line in (
        "user export nobody@example.com",
        "user delete leaving@example.com --now",
        "user delete leaving@example.com --now --yes",
        "user delete leaving@example.com --now --yes",
        "user show 7002",
    ):
        both(line)
    assert "only administrator of the project" in both("user delete ann@example.com --now --yes").err


def test_assertions_are_tested(both: Both, execute: Execute) -> None:
    for line in ("perm test", "perm test --json", "perm test --app 40", "perm test --app 4711", "perm test --app x"):
        both(line)
    statements = orjson.dumps(["ann@example.com may never.given", "only moderator may none.such"]).decode()
    execute("UPDATE applications SET assertions = CAST($1 AS jsonb) WHERE application_id = 40", statements)
    result = both("perm test")
    assert (result.code, "1 of 2 assertions fails" in result.out, "warning" in result.err) == (1, True, True)
    assert both("perm test --app 40 --json").code == 1
    execute("UPDATE applications SET assertions = '[]' WHERE application_id = 40")


def test_refused_requests_are_explained(both: Both, execute: Execute) -> None:
    execute(
        """INSERT INTO game_violations (id, gsid, reason, expected, found, address, expires)
        VALUES ('2de8a38444be1e27', 'a gsid', 'wrong secret', 'one', 'another', '192.0.2.7', now() + interval '9 h')"""
    )
    assert "wrong secret" in both("why 2de8a38444be1e27").out
    assert orjson.loads(both("why 2de8a38444be1e27 --json").out)["gsid"] == "a gsid"
    assert "there is no record" in both("why 0").err


def test_status_of_a_server_lists_its_nodes(sso: Sso, both: Both, signed_in: tuple[Server, Path]) -> None:
    """The nodes of two installations differ: the local form reads the database of the server."""
    server = signed_in[0]
    local = orjson.loads(server.sso("status", "--json").stdout.splitlines()[0])
    remote = orjson.loads(sso("--server", server.base_url, "status", "--json").out.splitlines()[0])
    same = ("node", "state", "version", "schema", "workers")
    assert local.keys() == remote.keys()
    assert [local[name] for name in same] == [remote[name] for name in same]
