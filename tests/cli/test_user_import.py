"""Users move in from the example files of the guide, sign in with the password that they had, and move out again."""

import io
import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from sso.cli import export
from sso.cli.context import CommandFailure
from sso.cli.user_files import json_stream
from sso.cli.user_files.json_stream import JsonStream
from sso.cli.user_files.keycloak import read_keycloak
from tests.cli.conftest import CommandResult, run_in_process
from tests.kit.browser import query
from tests.kit.server import Server

EXAMPLES = Path(__file__).parents[2] / "examples" / "moving_in"
GUIDE = Path(__file__).parents[2] / "docs" / "moving_in.rst"
APPLICATION = 4711
WEAK = "sha256$salt$13601bda4ea78e55a07b98866d2be6be0744e3866f13c00c811cab608a28f322"
# The sources, their options, what is printed, and the passwords of users.
SOURCES: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "keycloak": (
        ["keycloak-realm.json"],
        [
            "created 4, updated 0, unchanged 0, skipped 2",
            "no e-mail address",
            "the account of a client",
            "the password is temporary",
            "role offline_access (1)",
        ],
        {"ann": "correct horse", "cleo": ""},
    ),
    "auth0": (
        ["auth0.ndjson"],
        ["created 3, updated 0, unchanged 0, skipped 1", "(first: line 4)"],
        {"ann": "correct horse", "bob": "correct horse"},
    ),
    "firebase": (
        ["firebase-users.json", "--hash-config", str(EXAMPLES / "firebase-hash.txt")],
        ["created 1, updated 0, unchanged 0, skipped 1", "anonymous users come back as guests"],
        {"ann": "user1password"},
    ),
    "csv": (
        ["users.csv"],
        [
            "created 1, updated 0, unchanged 0, skipped 4",
            "password_hash: the number of iterations must be a number from 1 to 2,000,000 (first: line 3)",
            "the same login is on line 2 (first: line 4)",
            "login: ",
            "email_verified: expected true or false (first: line 6)",
        ],
        {"ann": "correct horse"},
    ),
}


@pytest.fixture(scope="module")
def studio(server: Server) -> Server:
    server.apply(
        {
            "applications": [{"application_id": APPLICATION, "name": "Moving in"}],
            "roles": {str(APPLICATION): [{"name": "moderator"}]},
            "identity_providers": [
                {
                    "id": "google",
                    "name": "Google",
                    "kind": "oidc",
                    "issuer": "https://accounts.google.com",
                    "client_id": "x",
                    "client_secret": "y",
                }
            ],
        }
    )
    return server


def sso(server: Server, *arguments: str, stdin: str = "") -> CommandResult:
    return run_in_process(*arguments, stdin=stdin, **server.settings)


def user_of(server: Server, login: str) -> dict[str, Any]:
    [row] = query(server, "SELECT * FROM users WHERE login_key = $1", login)
    return dict(row)


@pytest.mark.parametrize("source", SOURCES)
def test_users_of_an_example_file_sign_in_with_the_password_that_they_had(
    studio: Server, tmp_path: Path, source: str
) -> None:
    (name, *options), printed, passwords = SOURCES[source]
    assert f"$ sso import users examples/moving_in/{name} --from {source}" in GUIDE.read_text()
    command = ["import", "users", str(EXAMPLES / name), "--from", source, "--map", str(EXAMPLES / "map.json"), *options]
    report = tmp_path / "report.jsonl"
    report.touch(0o644)
    tried = sso(studio, *command, "--dry-run")
    assert tried.output.startswith("would be: ")
    assert query(studio, "SELECT FROM users WHERE login_key LIKE $1", f"%@{source}.example") == []
    done = sso(studio, *command, "--report", str(report))
    assert tried.output.removeprefix("would be: ") == done.output
    for text in printed:
        assert text in done.output
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    for secret in ("MDEy", "jxspr8Ki", "$2b$", "sha256$", "0123456789"):
        assert secret not in done.output + done.err + report.read_text()
    for person, password in passwords.items():
        login = f"{person}@{source}.example"
        stored = user_of(studio, login)["password_hash"]
        with studio.client() as http:
            assert http.post("/proxy/api/login", json={"login": login, "password": "wrong"}).status_code == 401
            if password:  # the others have a second factor or are disabled
                assert http.post("/proxy/api/login", json={"login": login, "password": password}).status_code == 200
                rehashed = user_of(studio, login)["password_hash"]
                assert rehashed != stored
                assert rehashed.startswith("$argon2id$v=19$m=8,t=1,p=1$")
                assert http.post("/proxy/api/login", json={"login": login, "password": password}).status_code == 200
    again = sso(studio, *command)
    created = printed[0].split()[1].rstrip(",")
    assert "created 0," in again.output
    assert f"skipped {created}: there is already a user with this login" in again.output


def test_fields_of_a_realm_and_its_names_are_taken_over(studio: Server, tmp_path: Path) -> None:
    file, report = tmp_path / "realm.json", tmp_path / "report.jsonl"
    file.write_text((EXAMPLES / "keycloak-realm.json").read_text().replace("keycloak.example", "realm.example"))
    command = ("import", "users", str(file), "--from", "keycloak", "--map", str(EXAMPLES / "map.json"))
    assert sso(studio, *command, "--report", str(report)).code == 0
    ann, bob, cleo, dan = (user_of(studio, f"{name}@realm.example") for name in ("ann", "bob", "cleo", "dan"))
    assert (ann["nick"], ann["lang"], ann["email_verified"], ann["tags"]) == ("ann", "de", True, ["editor", "beta"])
    assert orjson.loads(ann["meta"])["imported"] == {
        "source": "keycloak",
        "id": "0b3a1c52-5a7e-4a68-9a0a-5d3f0a6c0001",
    }
    assert (
        query(studio, "SELECT name FROM role_assignments WHERE user_id = $1", ann["user_id"])[0]["name"] == "moderator"
    )
    assert (bob["nick"], bob["disabled"], bob["email_verified"]) == ("bob", True, False)
    assert cleo["totp_sealed"]
    assert dan["password_hash"] is None
    lines = [orjson.loads(line) for line in report.read_text().splitlines()]
    [first] = [line for line in lines if line["login"] == "ann@realm.example"]
    assert (first["outcome"], first["user_id"], first["source_id"]) == ("created", ann["user_id"], ann_id(ann))
    assert "there is no identity provider steam: not linked" in first["notes"]


def ann_id(user: dict[str, Any]) -> str:
    return str(orjson.loads(user["meta"])["imported"]["id"])


def import_one(server: Server, login: str, *options: str, **fields: Any) -> tuple[str, str]:
    """Returns the outcome and the rest of what is printed."""
    line = orjson.dumps({"login": login, **fields}).decode()
    counts, _, notes = sso(server, "import", "users", "-", "--from", "jsonl", *options, stdin=line).output.partition(
        "\n"
    )
    [outcome] = [part.split()[0] for part in counts.split(", ") if part.endswith(" 1")]
    return outcome, notes


def test_update_changes_the_profile_and_no_password_that_exists(studio: Server) -> None:
    login = "kit@move.example"
    assert (
        import_one(studio, login, nick="Kit", email_verified=True, meta={"a": 1, "b": 1}, tags=["old"])[0] == "created"
    )
    update: dict[str, Any] = {"nick": "Kim", "email_verified": True, "password_hash": WEAK, "meta": {"b": 2, "c": 2}}
    assert import_one(studio, login, **update)[0] == "skipped"
    granted: dict[str, Any] = {
        "tags": ["staff"],
        "purchases": ["gold"],
        "level": "9",
        "phone": "1",
        "phone_verified": True,
    }
    granted |= {"identities": [{"provider": "google", "subject": "g-kit"}], "disabled": True}
    granted |= {"roles": [{"application_id": APPLICATION, "role": "moderator"}]}
    outcome, notes = import_one(studio, login, "--update", **update, **granted)
    assert outcome == "updated"
    for name in granted.keys() - {"disabled"}:
        assert f"{name} of a user who exists was not changed" in notes
    kit = user_of(studio, login)
    assert (kit["nick"], kit["password_hash"], kit["disabled"]) == ("Kim", WEAK, True)
    assert (kit["tags"], kit["purchases"], kit["level"], kit["phone_verified"]) == (["old"], [], "0", False)
    assert orjson.loads(kit["meta"]) == {"a": 1, "b": 2, "c": 2}
    assert query(studio, "SELECT FROM linked_identities WHERE user_id = $1", kit["user_id"]) == []
    assert query(studio, "SELECT FROM role_assignments WHERE user_id = $1", kit["user_id"]) == []
    other = WEAK.replace("salt", "pepper")
    outcome, notes = import_one(studio, login, "--update", nick="Kim", password_hash=other, disabled=False)
    assert (outcome, user_of(studio, login)["password_hash"]) == ("unchanged", WEAK)
    assert "because the user has one" in notes
    assert "disabled of a user who exists was not changed" in notes
    assert import_one(studio, login, "--update", "--passwords", password_hash=other)[0] == "updated"
    assert user_of(studio, login)["password_hash"] == other


def test_update_gives_a_password_only_if_the_address_is_verified_here_and_there(studio: Server) -> None:
    cases = [(True, False, {}), (False, True, {}), (True, True, {"totp_secret": "JBSWY3DPEHPK3PXPJBSWY3DP"})]
    for number, (here, there, fields) in enumerate(cases):
        login = f"squat{number}@move.example"
        import_one(studio, login, email_verified=here)
        outcome, notes = import_one(studio, login, "--update", email_verified=there, password_hash=WEAK, **fields)
        assert (outcome, user_of(studio, login)["password_hash"]) == ("unchanged", None)
        assert "the password was left out" in notes


def test_user_id_of_another_user_skips_the_row(studio: Server) -> None:
    import_one(studio, "owner@move.example", user_id="88100002", nick="Owner")
    before = user_of(studio, "owner@move.example")
    for options in ([], ["--update"], ["--update", "--passwords"]):
        outcome, notes = import_one(
            studio, "thief@move.example", *options, user_id="88100002", nick="X", password_hash=WEAK
        )
        assert outcome == "skipped"
        assert "user_id belongs to another user" in notes
    assert user_of(studio, "owner@move.example") == before


@pytest.mark.parametrize(
    ("source", "text", "problem"),
    [
        ("keycloak", '{"realm": "x"}', "line 1: the file has no member users"),
        ("keycloak", '{"users": [\n{"email": "a@b.example"}', "line 2: the file ends too early"),
        ("keycloak", '{"users": [\n{"email": nonsense}]}', "line 2: expected JSON"),
        ("firebase", "[1]", "expected an object with the member users"),
        ("csv", "email,shoe_size\n", "unknown column shoe_size"),
        ("csv", "nick\nAnn\n", "with login or email"),
        ("csv", 'email\n"a@b.example', "line 2: "),
        ("jsonl", '{"login": "a@b.example", "roles": [{"application_id": 1, "role": "root"}]}', "sso role assign"),
        (
            "jsonl",
            '{"login": "a@b.example", "roles": [{"application_id": 4711, "role": "king"}]}',
            "there is no role king (0 users before them were done",
        ),
    ],
)
def test_file_that_cannot_be_read_changes_nothing(studio: Server, source: str, text: str, problem: str) -> None:
    done = sso(studio, "import", "users", "-", "--from", source, stdin=text)
    assert done.code == 1
    assert problem in done.err
    assert done.err.count("\n") == 1
    assert query(studio, "SELECT FROM users WHERE login_key = 'a@b.example'") == []


def test_lines_that_are_no_users_are_skipped_with_a_reason(studio: Server, tmp_path: Path) -> None:
    lines = ["nonsense", "[1]", '{"nick": "x"}', '{"login": "l@move.example", "nick": "\\ud800"}', "", '{"login": 1}']
    lines += [
        '{"login": "big@move.example", "meta": {"x": "' + "y" * 70_000 + '"}}',
        '{"login": "b@move.example", "is": 1}',
    ]
    lines.append('{"login": "d@move.example", "nick": "\\u0000"}')
    lines.append('{"login": "e@move.example", "meta": {"x": [' + ",".join("1" * 20_000) + "]}}")
    lines.append('{"login": "f@move.example", "meta": ' + '{"x":' * 63 + "1" + "}" * 63 + "}")
    lines.append('{"login": "django@move.example", "password_hash": "!x9"}')
    lines.append('{"login": "c@move.example", "password_hash": "md5$salt$0123456789abcdef0123456789abcdef"}')
    lines.append('{"login": "s\\ud800@move.example", "user_id": "\\udfff"}')
    lines.append('{"login": "n@move.example", "user_id": ' + "9" * 30 + ', "\\ud800": 1}')
    report = tmp_path / "report.jsonl"
    command = ("import", "users", "-", "--from", "jsonl", "--report", str(report))
    done = sso(studio, *command, stdin="\n".join(lines)).output
    assert done.startswith("created 1, updated 0, unchanged 0, skipped 13\n")
    entries = [orjson.loads(line) for line in report.read_text().splitlines()]
    assert len(entries) == 14
    assert "s?@move.example" in {entry["login"] for entry in entries}
    for text in ("has a NUL character", "at most 10000 values", "at most 64 levels", "no password that can be used"):
        assert text in done
    for text in ("expected JSON (first: line 1)", "expected an object (first: line 2)", "64 KiB (first: line 7)"):
        assert text in done
    assert "is: unknown field (first: line 8)" in done
    assert "password_hash: unknown form" in done
    assert "0123456789abcdef" not in done


def test_exported_users_can_be_imported_and_hashes_need_an_option(studio: Server, tmp_path: Path) -> None:
    user = {
        "login": "max@export.example",
        "user_id": "88100001",
        "nick": "Max",
        "email_verified": True,
        "tags": ["beta"],
        "password_hash": WEAK,
        "totp_secret": "JBSWY3DPEHPK3PXPJBSWY3DP",
        "identities": [{"provider": "google", "subject": "g-88100001", "name": "Max"}],
        "roles": [{"application_id": APPLICATION, "role": "moderator"}],
    }
    assert sso(studio, "import", "users", "-", "--from", "jsonl", stdin=orjson.dumps(user).decode()).code == 0
    [linked] = query(studio, "SELECT after FROM audit WHERE operation = 'user.link' AND target = '88100001'")
    assert orjson.loads(linked["after"]) == {"provider": "google"}
    [event] = query(studio, "SELECT detail FROM account_events WHERE user_id = '88100001' AND kind = 'identity_linked'")
    assert orjson.loads(event["detail"])["name"] == "Google"
    plain, full = tmp_path / "plain.jsonl", tmp_path / "full.jsonl"
    assert sso(studio, "export", "users", str(plain)).code == 0
    assert sso(studio, "export", "users", str(full), "--with-hashes").code == 0
    assert "exists already" in sso(studio, "export", "users", str(full)).err
    for file in (plain, full):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    records = [
        {line["login"]: line for line in map(orjson.loads, file.read_text().splitlines())}[user["login"]]
        for file in (plain, full)
    ]
    assert records[1] | user == records[1]
    assert records[0] == {
        name: value for name, value in records[1].items() if name not in ("password_hash", "totp_secret")
    }
    entries = query(studio, "SELECT after FROM audit WHERE operation = 'users.export' ORDER BY id")
    assert [orjson.loads(entry["after"]) for entry in entries[-2:]] == [{"secrets": False}, {"secrets": True}]
    one = tmp_path / "one.jsonl"
    one.write_bytes(orjson.dumps(records[1]))
    assert "skipped 1" in sso(studio, "import", "users", str(one), "--from", "jsonl").output
    query(studio, "DELETE FROM users WHERE user_id = '88100001'")
    assert "created 1" in sso(studio, "import", "users", str(one), "--from", "jsonl").output
    assert user_of(studio, "max@export.example")["password_hash"] == WEAK


def test_password_of_an_old_realm_is_that_of_a_new_one() -> None:
    bob = orjson.loads((EXAMPLES / "keycloak-realm.json").read_bytes())["users"][1]
    [new] = bob["credentials"]
    secret, data = orjson.loads(new["secretData"]), orjson.loads(new["credentialData"])
    old = {"type": "password", "hashedSaltedValue": secret["value"], "salt": secret["salt"], **data}
    files = [_file(_json({"users": [bob | {"credentials": [credential]}]})) for credential in (new, old)]
    first, second = ([entry.user for entry in read_keycloak(file)] for file in files)
    assert first == second
    assert first[0] is not None
    assert first[0].fields["password_hash"].startswith("$pbkdf2-sha256$1000$")


def test_large_file_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that lie on the border of two pieces are complete, and lines are counted."""
    users = [{"n": number, "text": 'é\\"]}' * 3} for number in range(1, 60)]
    text = (
        '{"number": 12345,\n "before": [{"users": []}], "users" : [\n' + ",\n".join(map(_json, users)) + '\n], "x": {}}'
    )
    for size in range(1, 40):
        monkeypatch.setattr(json_stream, "CHUNK", size)
        assert list(JsonStream(_file(text)).users()) == [(index + 3, user) for index, user in enumerate(users)]
    with pytest.raises(CommandFailure, match=r"expected JSON|too large"):
        list(JsonStream(_file('{"users": [' + "[" * 100_000)).users())


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _file(text: str) -> io.StringIO:
    file = io.StringIO(text)
    file.name = "users.json"
    return file


def test_export_to_a_full_disk_is_reported_in_one_line(
    studio: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.apply({"users": [{"login": "exported@example.com"}]})
    file = tmp_path / "users.jsonl"
    with Path("/dev/full").open("wb") as full:
        monkeypatch.setattr(export, "_create", lambda _: full)
        assert sso(studio, "export", "users", str(file)).failure == f"cannot write {file}: No space left on device"
