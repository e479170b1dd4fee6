"""The same commands in process, at the socket of a service and on a server have the same output and errors.

What each of them prints is the subject of the files of these commands. Here is one of each kind of answer and error.
"""

from pathlib import Path

import orjson
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from sso.core.keys import private_pem, public_pem
from tests.cli.both_forms import Both, Execute, beside, both, execute, signed_in
from tests.cli.conftest import Sso, run_in_process
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server

__all__ = ["beside", "both", "execute", "signed_in"]


def test_projects_and_their_members(both: Both) -> None:
    for line in (
        "project list",
        "project list --json",
        "project show rd",
        "project show none",
        "project add 'Blue Sky' --admin ann@example.com --alias bs --domain example.com --description Second",
        "project add 'Blue Sky' --admin ann@example.com",
        "project add a/b",
        "project add New --domain a@b",
        "project add New --admin none@example.com",
        "project change bs --title Blue --alias blue --remove-alias bs --domain b.example",
        "project change blue --remove-alias x",
        "project show blue",
        "project member list rd",
        "project member add rd bob@example.com developer",
        "project member add rd 5002 developer",
        "project member add rd 5002 app_admin --app 40 --until 2035-01-01",
        "project member add rd 5002 srv_admin --service 40 --ttl 60",
        "project member add rd 5002 manager --group testers",
        "project member add rd 5002 app_admin --app 41",
        "project member add rd 5002 root",
        "project member add rd none viewer",
        "project member add rd 5001 admin --until 2035-01-01",
        "project member list rd",
        "project member delete rd 5002 developer",
        "project member delete rd 5002 developer",
        "project member delete rd 5002 --app 40",
        "project member delete rd 5002",
        "project member delete rd 5002",
        "project member delete rd 5001",
        "project member list rd",
        "project delete blue --yes",
        "project delete blue --yes",
        "project change blue --title X",
        "project list",
        "audit --project none",
    ):
        both(line)


def test_groups(both: Both) -> None:
    for line in (
        "group list",
        "group list --project rd --json",
        "group show testers",
        "group show 0123456789abcdef01234567 --project rd",
        "group show none",
        "group add Players --project rd --tag a --description All",
        "group add a/b --project rd",
        "group add Twin --project rd",
        "group add Twin --project rd",
        "group change players --title Gamers --tag project --remove-tag a",
        "group change gamers --remove-tag b",
        "group member add gamers ann@example.com 5002",
        "group member add gamers nobody",
        "group member list gamers",
        "group member delete gamers 5001",
        "group member delete gamers 5001",
        "group condition add gamers staff domain=studio.example tag=beta",
        'group condition add gamers friends \'{"or": [{"tag": "beta"}, {"uid": ["1000"]}]}\'',
        "group condition delete gamers none",
        "group condition delete gamers staff",
        "group role add gamers moderator --app 40",
        "group role add gamers moderator --app 4711",
        "group role add gamers moderator --app 40 --action revoke",
        "group show gamers",
        "group role delete gamers moderator --app 40",
        "group role delete gamers moderator --app 40",
        "group access gamers allow",
        "group delete gamers --yes",
        "group delete gamers --yes",
        "group access twin allow --project rd",
        "group delete none --yes",
        "group list",
    ):
        result = both(line)
        if "twin" in line:
            assert "several groups have the title twin" in result.err


def test_roles_and_assignments(both: Both) -> None:
    for line in (
        "role list --app 40",
        "role list --app 4711",
        "role show moderator --app 40",
        "role show captain --app 40",
        "role add scout --app 40 --rule map.reveal --rule 'chat.mute|eu' --description Sees --user-limit 1",
        "role add scout --app 40",
        "role add x --app 4711",
        "role add x --app 40 --rule 'a b'",
        "role add x --app 40 --condition ip=nowhere",
        "role add staff --app 40 --rule srv.restart --condition domain=studio.example --default --protected",
        "role list --app 40 --json",
        "role change scout --app 40 --rule map.hide --remove-rule map.reveal --params eu",
        "role change scout --app 40 --rule map.hide",
        "role change staff --app 40 --no-condition --regular --no-default",
        "role change captain --app 40 --rule a",
        "role assign ann@example.com scout --app 40 --until 2035-01-01",
        "role assign ann@example.com scout --app 40 --until 2035-01-01",
        "role assign bob@example.com scout --app 40",
        "role assign ann@example.com scout --app 40 --ttl 60",
        "role assign 5001 captain --app 40",
        "role assign none scout --app 40",
        "perm list ann@example.com --app 40",
        "perm list ann@example.com --app 4711",
        "role unassign ann@example.com scout --app 40",
        "role unassign ann@example.com scout --app 40",
        "role delete scout --app 40 --yes",
        "role delete scout --app 40 --yes",
        "role delete staff --app 40 --yes",
        "role delete root --app 1 --yes",
        "role change root --app 1 --regular",
        "role delete admin --app 1 --yes",
        "role change admin --app 1 --remove-rule project.can_manage_project",
    ):
        both(line)


def test_applications_and_their_keys(both: Both, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "key.pem").write_text(public_pem(key.public_key()))
    (tmp_path / "other.pem").write_text(public_pem(ed25519.Ed25519PrivateKey.generate().public_key()))
    (tmp_path / "state.json").write_bytes(
        orjson.dumps({"applications": [{"application_id": 40, "service_meta": {"private_key": private_pem(key)}}]})
    )
    for line in (
        "app list",
        "app list --project rd --json",
        "app show 40",
        "app show 4711",
        "app add Chess --project rd --description Game",
        "app add Chess --project rd",
        f"app add {'x' * 300}",
        "app add Chess --project none",
        "app list --project rd",
        "app service-jwt 40",
        f"apply {tmp_path / 'state.json'}",
        "app service-jwt 40",
        f"app key add 40 {tmp_path / 'key.pem'}",
        f"app key add 40 {tmp_path / 'other.pem'}",
        f"app key add 40 {tmp_path / 'other.pem'}",
        f"app key add 4711 {tmp_path / 'other.pem'}",
        f"app key add 40 {tmp_path / 'state.json'}",
        "app key list 40",
        "app show 40",
        "app service-jwt 40",
        "app email-secret 40",
        "app email-secret 4711",
        "app key delete 40 unknown",
        "app key delete 4711 unknown",
        "audit --app 40 --operation application.create",
    ):
        both(line)


def test_identity_providers(both: Both) -> None:
    oidc = "--kind oidc --issuer https://id.example.com --client-id sso"
    for line in (
        f"idp add studio {oidc} --name Studio --trusted-email --position 2",
        f"idp add studio {oidc}",
        f"idp add A {oidc}",
        "idp add x --kind oidc --client-id sso",
        "idp add x --kind oidc --issuer http://id.example.com --client-id sso",
        f"idp add x {oidc} --claim sub=id",
        "idp add steam --kind steam",
        "idp list",
        "idp list --json",
        "idp delete steam",
        "idp delete steam --yes",
        "idp delete steam --yes",
        "idp delete studio --yes",
    ):
        both(line)


def test_clients(both: Both) -> None:
    for line in (
        "client list",
        "client add forum --profile oidc --redirect-uri https://forum.example.com/callback",
        "client add forum --profile oidc --redirect-uri https://forum.example.com/callback",
        "client show forum",
        "client rotate-secret forum --overlap 7d --expires-in 90d",
        "client show forum",
        "client show forum --json",
        "client rotate-secret forum --finish",
        "client set forum --name Forum",
        "client disable forum",
        "client list --json",
        "client show none",
    ):
        result = both(line)
        if line == "client show forum --json":
            shown = orjson.loads(result.out)
            assert (shown["secrets"], bool(shown["secret_expires"]), bool(shown["second_expires"])) == (2, True, True)


def test_signing_keys(both: Both) -> None:
    both("key list", ordered=False)
    for line in ("key rotate --alg EdDSA --side", "key rotate", "key retire unknown", "key rotate --side"):
        both(line)
    lines = both("key list --json", ordered=False).out.splitlines()
    assert sum("published, signs from" in line for line in lines) == 2


def test_webhooks(both: Both) -> None:
    webhook = "0123456789abcdef"
    for line in (
        "webhook list",
        "webhook add http://127.0.0.1:9/events --event permissions --event users",
        "webhook add http://127.0.0.1:9/all",
        "webhook add ftp://example.com",
        "webhook add http://tools.example.com/events",
        "webhook add https://10.0.0.1/events",
        "webhook add https://tools.example.com/events --event unknown",
        "webhook add https://tools.example.com/events --secret-stdin",
        "webhook list",
        f"webhook delete {webhook}",
        f"webhook delete {webhook} --yes",
        f"webhook dead-letters {webhook}",
        f"webhook resend {webhook}",
        f"webhook resend {webhook} 17",
        f"webhook resend {webhook} x",
    ):
        both(line, ordered=line != "webhook list")


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
        run_in_process("user", "export", "7002", **server.settings).out,
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
    local = orjson.loads(run_in_process("status", "--json", **server.settings).lines[0])
    remote = orjson.loads(sso("--server", server.base_url, "status", "--json").lines[0])
    same = ("node", "state", "version", "schema", "workers")
    assert local.keys() == remote.keys()
    assert [local[name] for name in same] == [remote[name] for name in same]
