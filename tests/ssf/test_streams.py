"""The API of streams: settings, status, subjects, verification, and what a client cannot do to others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson
import pytest

from sso.ssf.stream_store import MAX_FORGOTTEN
from tests.admin.conftest import Administrator
from tests.kit.browser import query, user_id_of
from tests.kit.deleted_meanwhile import answer_while_deleting
from tests.kit.oauth import TOKEN, Browser, error_of, new_browser
from tests.kit.row_locks import locked_by_another_transaction
from tests.kit.server import Server, until
from tests.kit.signals import (
    CAEP,
    POLL,
    PUSH,
    RISC,
    SSF,
    PushReceiver,
    SignalClient,
    event_of,
    names_of,
    push_receiver,
    signal_client,
    wait_for_tokens,
)

WAITING_CHANGES = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND wait_event_type = 'Lock' AND query LIKE '%FROM signal_streams%FOR NO KEY UPDATE%'"""
FIRST_NAMES = ["session-revoked", "account-disabled"]
DELETION = "SELECT before FROM audit WHERE operation = 'signal_stream.delete' AND target = $1"
ADD_SUBJECTS = """WITH added AS (
        INSERT INTO users (user_id, login, login_key) SELECT $1 || n, $1 || n, $1 || n
        FROM generate_series(1, CAST($2 AS int)) n RETURNING user_id
    )
    INSERT INTO signal_subjects (stream_id, user_id) SELECT $1, user_id FROM added"""


@pytest.fixture(scope="module")
def client(server: Server) -> SignalClient:
    return signal_client(server)


@pytest.fixture(scope="module")
def stranger(server: Server) -> SignalClient:
    return signal_client(server)


def connected_user(server: Server, *clients: SignalClient) -> Browser:
    browser = new_browser(server).sign_in()
    for client in clients:
        client.site.tokens(browser)
    return browser


def set_disabled(root: Administrator, user_id: str, disabled: bool) -> None:
    assert root.request("PATCH", f"/users/{user_id}", json={"disabled": disabled}).status_code == 200


def subject(server: Server, sub: str) -> dict[str, str]:
    return {"format": "iss_sub", "iss": server.base_url, "sub": sub}


def test_metadata_names_the_endpoints(server: Server, client: SignalClient) -> None:
    metadata = client.http.get("/.well-known/ssf-configuration").json()
    base = server.base_url
    assert metadata["issuer"] == base
    assert metadata["spec_version"] == "1_0"
    assert metadata["default_subjects"] == "ALL"
    assert metadata["delivery_methods_supported"] == [PUSH, POLL]
    assert metadata["authorization_schemes"] == [{"spec_urn": "urn:ietf:rfc:6749"}]
    endpoints = {name: value for name, value in metadata.items() if name.endswith("_endpoint")}
    assert endpoints == {
        "configuration_endpoint": f"{base}/ssf/stream",
        "status_endpoint": f"{base}/ssf/status",
        "add_subject_endpoint": f"{base}/ssf/subjects:add",
        "remove_subject_endpoint": f"{base}/ssf/subjects:remove",
        "verification_endpoint": f"{base}/ssf/verify",
    }
    assert client.http.get(metadata["jwks_uri"]).json()["keys"]


def test_stream_is_created_changed_replaced_and_deleted(server: Server, client: SignalClient) -> None:
    wanted = [f"{CAEP}session-revoked", f"{RISC}account-purged", f"{CAEP}device-compliance-change"]
    created = client.call("POST", "stream", json={"events_requested": wanted, "description": "Shop"})
    assert created.status_code == 201
    stream = created.json()
    stream_id = stream["stream_id"]
    assert (stream["iss"], stream["aud"]) == (server.base_url, client.site.client_id)
    assert stream["events_requested"] == wanted
    assert stream["events_delivered"] == wanted[:2]
    assert len(stream["events_supported"]) == 7
    assert stream["delivery"] == {"method": POLL, "endpoint_url": f"{server.base_url}/ssf/poll?stream_id={stream_id}"}
    push = {"method": PUSH, "endpoint_url": "https://8.8.8.8/e", "authorization_header": "Bearer very-secret"}
    changed = client.call("PATCH", "stream", json={"stream_id": stream_id, "delivery": push}).json()
    assert changed["delivery"] == {"method": PUSH, "endpoint_url": "https://8.8.8.8/e"}
    assert (changed["events_requested"], changed["description"]) == (wanted, "Shop")
    (row,) = query(server, "SELECT authorization_sealed FROM signal_streams WHERE stream_id = $1", stream_id)
    assert "very-secret" not in row["authorization_sealed"]
    replaced = client.call("PUT", "stream", json={"stream_id": stream_id, "events_requested": wanted[:1]}).json()
    assert replaced["delivery"]["method"] == POLL
    assert "description" not in replaced
    (row,) = query(server, "SELECT authorization_sealed FROM signal_streams WHERE stream_id = $1", stream_id)
    assert row["authorization_sealed"] is None
    path = f"stream?stream_id={stream_id}"
    assert client.call("GET", path, scope="ssf.read").json() == replaced
    assert replaced in client.call("GET", "stream", scope="ssf.read").json()
    assert client.call("DELETE", path).status_code == 204
    assert client.call("GET", path).status_code == 404


def test_concurrent_changes_of_a_stream_are_all_kept(server: Server, client: SignalClient) -> None:
    """A new header must not go to the old receiver."""
    old, new = ({"method": PUSH, "endpoint_url": f"https://8.8.8.8/{name}"} for name in ("old", "new"))
    stream_id = client.add_stream(delivery=old, description="Shop")
    changes: list[dict[str, Any]] = [{"delivery": new | {"authorization_header": "Bearer new"}}, {"description": "Bar"}]
    answers: list[int] = []
    headers = client.headers()

    def change(fields: dict[str, Any]) -> None:
        with server.client() as http:
            json = {"stream_id": stream_id} | fields
            answers.append(http.patch("/ssf/stream", json=json, headers=headers).status_code)

    threads = [threading.Thread(target=change, args=(fields,)) for fields in changes]
    lock = f"SELECT FROM signal_streams WHERE stream_id = '{stream_id}' FOR UPDATE"
    with locked_by_another_transaction(server.settings["SSO_DATABASE_URL"], lock):
        for thread in threads:
            thread.start()
        until(lambda: query(server, WAITING_CHANGES)[0]["count"] == len(threads))
    for thread in threads:
        thread.join()
    assert answers == [200, 200]
    stream = client.call("GET", f"stream?stream_id={stream_id}").json()
    assert (stream["delivery"], stream["description"]) == (new, "Bar")
    assert client.call("DELETE", f"stream?stream_id={stream_id}").status_code == 204


INVALID: list[tuple[str, str, Any, str]] = [
    ("POST", "stream", {"delivery": {"method": "carrier pigeon"}}, "delivery.method"),
    ("POST", "stream", {"delivery": {"method": PUSH}}, "delivery.endpoint_url"),
    ("POST", "stream", {"delivery": {"method": PUSH, "endpoint_url": "http://example.com/e"}}, "delivery.endpoint_url"),
    ("POST", "stream", {"delivery": {"method": PUSH, "endpoint_url": "https://10.0.0.1/e"}}, "delivery.endpoint_url"),
    ("POST", "stream", {"delivery": {"method": PUSH, "endpoint_url": "https://169.254.169.254/"}}, "endpoint_url"),
    ("POST", "stream", {"delivery": {"method": PUSH, "endpoint_url": "https://[::ffff:10.0.0.1]/"}}, "endpoint_url"),
    ("POST", "stream", {"aud": "another"}, "aud"),
    ("POST", "stream", {"iss": "https://evil.example.com"}, "iss"),
    ("POST", "stream", {"events_requested": "all"}, "events_requested"),
    ("POST", "stream", {"events_requested": ["x"] * 101}, "events_requested"),
    ("PATCH", "stream", {"description": "no stream_id"}, "stream_id"),
    ("POST", "status", {"stream_id": "x", "status": "asleep"}, "status"),
    ("POST", "subjects:add", {"stream_id": "x", "subject": {"format": "email", "email": "a@b.c"}}, "subject.format"),
    ("POST", "subjects:add", {"stream_id": "x", "subject": {"format": "iss_sub", "iss": "x", "sub": "1"}}, "iss"),
    ("POST", "verify", {"stream_id": "x", "state": 7}, "state"),
    ("POST", "poll?stream_id=x", {"maxEvents": -1}, "maxEvents"),
    ("POST", "poll?stream_id=x", {"ack": ["x"] * 1001}, "ack"),
    ("POST", "poll", {}, "stream_id"),
    ("GET", "status", None, "stream_id"),
]


def test_invalid_request_names_the_field(client: SignalClient) -> None:
    for method, path, body, named in INVALID:
        answer = client.call(method, path, json=body)
        assert error_of(answer) == (400, "invalid_request"), (path, body, answer.text)
        assert named in answer.json()["error_description"], (path, body)


def test_text_that_is_no_id_is_an_unknown_stream(client: SignalClient) -> None:
    for stream_id in ("%00", "a%20b", "%C3%A4"):
        assert client.call("GET", f"status?stream_id={stream_id}").status_code == 404, stream_id
        assert client.call("GET", f"stream?stream_id={stream_id}").status_code == 404, stream_id
        assert client.call("POST", f"poll?stream_id={stream_id}", json={"returnImmediately": True}).status_code == 404


def test_header_of_the_receiver_is_one_line(client: SignalClient) -> None:
    delivery = {"method": PUSH, "endpoint_url": "https://8.8.8.8/e", "authorization_header": "a\r\nX-Other: b"}
    answer = client.call("POST", "stream", json={"delivery": delivery})
    assert answer.status_code == 400
    assert "authorization_header" in answer.json()["error_description"]


def test_large_body_is_refused(client: SignalClient) -> None:
    assert client.call("POST", "stream", json={"description": "x" * 300_000}).status_code == 413


CALLS: list[tuple[str, str, Any]] = [
    ("POST", "stream", {}),
    ("PATCH", "stream", {"stream_id": "ID", "description": "mine"}),
    ("PUT", "stream", {"stream_id": "ID"}),
    ("POST", "status", {"stream_id": "ID", "status": "disabled"}),
    ("POST", "subjects:add", {"stream_id": "ID", "subject": "SUBJECT"}),
    ("POST", "subjects:remove", {"stream_id": "ID", "subject": "SUBJECT"}),
    ("POST", "verify", {"stream_id": "ID"}),
    ("DELETE", "stream?stream_id=ID", None),
    ("GET", "stream?stream_id=ID", None),
    ("GET", "status?stream_id=ID", None),
    ("POST", "poll?stream_id=ID", {"returnImmediately": True, "maxEvents": 0}),
]


def test_scopes_and_foreign_streams(server: Server, client: SignalClient, stranger: SignalClient) -> None:
    """A client finds only its own streams; a token that may read cannot change; others are not accepted at all."""
    stream_id = client.add_stream()

    def call(caller: SignalClient, number: int, headers: dict[str, str]) -> httpx.Response:
        method, path, body = CALLS[number]
        named = body and {"ID": stream_id, "SUBJECT": subject(server, "1")}
        fields = body and {name: named.get(value, value) for name, value in body.items()}
        return caller.http.request(method, f"/ssf/{path.replace('ID', stream_id)}", headers=headers, json=fields)

    own_read, foreign = client.headers("ssf.read"), stranger.headers()
    form = {"grant_type": "client_credentials"}
    unscoped = client.http.post(TOKEN, data=form, headers=client.site.basic()).json()["access_token"]
    before = client.call("GET", f"stream?stream_id={stream_id}").json()
    for number, (method, path, _) in enumerate(CALLS):
        answer = call(client, number, own_read)
        reads = method == "GET" or path.startswith("poll")
        assert (answer.status_code == 200) is reads, (method, path, answer.text)
        if not reads:
            assert error_of(answer) == (403, "insufficient_scope")
            assert 'scope="ssf.manage"' in answer.headers["WWW-Authenticate"]
        if number:
            assert call(stranger, number, foreign).status_code == 404, (method, path)
        assert error_of(call(client, number, {"Authorization": f"Bearer {unscoped}"})) == (403, "insufficient_scope")
        assert error_of(call(client, number, {})) == (401, "invalid_token")
        assert call(client, number, {"Authorization": "Bearer app1.nothing"}).status_code == 401
    assert client.call("GET", f"stream?stream_id={stream_id}").json() == before


def test_token_with_a_scope_has_no_rights_of_the_application(server: Server, client: SignalClient) -> None:
    answer = client.http.get("/api/admin/changes", headers=client.headers())
    assert answer.status_code == 401
    form = {"grant_type": "client_credentials", "scope": "openid"}
    assert error_of(client.http.post(TOKEN, data=form, headers=client.site.basic())) == (400, "invalid_scope")


def test_number_of_streams_is_limited(server: Server) -> None:
    client = signal_client(server)
    for _ in range(10):
        client.add_stream()
    assert client.call("POST", "stream", json={}).status_code == 409


def test_stream_of_a_client_that_is_deleted_meanwhile_is_not_added(server: Server) -> None:
    client = signal_client(server)
    client.headers()
    stream_id = client.add_stream()
    deletion = f"DELETE FROM oauth_clients WHERE client_id = '{client.site.client_id}'"
    answer = answer_while_deleting(
        server, deletion, "FROM oauth_clients%FOR NO KEY UPDATE", lambda: client.call("POST", "stream", json={})
    )
    assert error_of(answer) == (401, "invalid_token")
    assert query(server, "SELECT FROM signal_streams WHERE stream_id = $1", stream_id) == []


@pytest.mark.parametrize("statement", ["WITH known_clients", "INTO signal_subjects"])
def test_stream_that_is_deleted_meanwhile_gets_nothing_about_the_user(
    server: Server, client: SignalClient, root: Administrator, statement: str
) -> None:
    """An event about a user who is disabled, or that the client has had tokens of a user who has revoked them."""
    stream_id, browser = client.add_stream(), new_browser(server).sign_in()
    tokens, user_id = client.site.tokens(browser, scope="openid offline_access"), user_id_of(server, browser.login)

    def send() -> httpx.Response:
        if statement == "WITH known_clients":
            return root.request("PATCH", f"/users/{user_id}", json={"disabled": True})
        return client.site.revoke(tokens["refresh_token"])

    deletion = f"DELETE FROM signal_streams WHERE stream_id = '{stream_id}'"
    assert answer_while_deleting(server, deletion, statement, send).status_code == 200
    assert client.call("GET", f"stream?stream_id={stream_id}").status_code == 404


@contextmanager
def deletion_of_many_subjects_fails(server: Server) -> Iterator[None]:
    """A transaction that deletes more than some thousands of them could take too long."""
    query(
        server,
        f"""CREATE FUNCTION takes_too_long() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF (SELECT count(*) FROM forgotten) > {MAX_FORGOTTEN} THEN
                RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
            END IF;
            RETURN NULL;
        END $$""",
    )
    query(
        server,
        """CREATE TRIGGER takes_too_long AFTER DELETE ON signal_subjects REFERENCING OLD TABLE AS forgotten
        FOR EACH STATEMENT EXECUTE FUNCTION takes_too_long()""",
    )
    try:
        yield
    finally:
        query(server, "DROP FUNCTION takes_too_long CASCADE")


@pytest.mark.parametrize("is_administrator", [False, True], ids=["client", "administrator"])
def test_stream_that_knows_many_users_is_deleted(server: Server, root: Administrator, is_administrator: bool) -> None:
    client = signal_client(server)
    stream = client.add_stream()
    query(server, ADD_SUBJECTS, stream, 2 * MAX_FORGOTTEN + 1)
    with deletion_of_many_subjects_fails(server):
        if is_administrator:
            answer = root.request("DELETE", f"/clients/{client.site.client_id}/signal-streams/{stream}")
        else:
            answer = client.call("DELETE", f"stream?stream_id={stream}")
    assert answer.is_success, answer.text
    assert query(server, "SELECT FROM signal_streams WHERE stream_id = $1", stream) == []
    (deletion,) = query(
        server, "SELECT before FROM audit WHERE operation = 'signal_stream.delete' AND target = $1", stream
    )
    assert orjson.loads(deletion["before"])["status"] == "enabled"


def test_users_who_do_not_know_the_client_are_not_signalled(
    server: Server, root: Administrator, stranger: SignalClient
) -> None:
    """Adding a subject tells nothing about foreign accounts, and does not make one known."""
    client = signal_client(server)
    stream = client.add_stream()
    foreign, own = connected_user(server, stranger), connected_user(server, client)
    foreign_id, own_id = user_id_of(server, foreign.login), user_id_of(server, own.login)
    answers = [
        client.call("POST", "subjects:add", json={"stream_id": stream, "subject": subject(server, sub)})
        for sub in (own_id, foreign_id, "404404404")
    ]
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, "{}")}
    set_disabled(root, foreign_id, True)
    set_disabled(root, own_id, True)
    events = client.take(stream)
    assert {item["sub_id"]["sub"] for item in events} == {own_id}
    removals = [
        client.call("POST", "subjects:remove", json={"stream_id": stream, "subject": subject(server, sub)})
        for sub in (own_id, foreign_id, "404404404")
    ]
    assert {(answer.status_code, answer.text) for answer in removals} == {(204, "")}
    set_disabled(root, own_id, False)
    set_disabled(root, own_id, True)
    client.call("POST", "subjects:add", json={"stream_id": stream, "subject": subject(server, own_id)})
    set_disabled(root, own_id, False)
    assert names_of(client.take(stream)) == ["account-enabled"]


def test_acknowledgements_concern_the_own_stream_only(
    server: Server, root: Administrator, stranger: SignalClient
) -> None:
    client = signal_client(server)
    stream, foreign = client.add_stream(), stranger.add_stream()
    user_id = user_id_of(server, connected_user(server, client).login)
    set_disabled(root, user_id, True)
    sets = client.poll(stream).json()["sets"]
    assert len(sets) == 2
    other = client.add_stream()
    for caller, name in ((stranger, foreign), (client, other)):
        assert caller.poll(name, ack=list(sets), returnImmediately=True).json() == {"sets": {}}
    first, second = client.poll(stream, maxEvents=1).json(), client.poll(stream).json()
    assert first["moreAvailable"] is True
    assert list(first["sets"]) == list(sets)[:1]
    assert list(second["sets"]) == list(sets)
    errors = {next(iter(sets)): {"err": "invalid_request", "description": "not \u0007 mine"}}
    assert list(client.poll(stream, setErrs=errors).json()["sets"]) == list(sets)[1:]
    (row,) = query(server, "SELECT problem FROM signal_streams WHERE stream_id = $1", stream)
    assert row["problem"] == "rejected by the receiver: invalid_request: not ? mine"
    assert client.poll(stream, ack=list(sets), maxEvents=0).json() == {"sets": {}}


def test_held_poll_gets_an_event_when_it_happens(server: Server, client: SignalClient, root: Administrator) -> None:
    stream = client.add_stream(events_requested=[f"{RISC}account-disabled"])
    user_id = user_id_of(server, connected_user(server, client).login)
    answers: list[httpx.Response] = []
    headers = client.headers("ssf.read")

    def hold() -> None:
        with server.client() as http:
            answers.append(http.post(f"/ssf/poll?stream_id={stream}", json={}, headers=headers, timeout=90))

    thread = threading.Thread(target=hold)
    thread.start()
    set_disabled(root, user_id, True)
    thread.join()
    (token,) = answers[0].json()["sets"].values()
    assert event_of(client.claims(token))[0] == "account-disabled"
    assert answers[0].headers["Cache-Control"] == "no-store"


def test_status_and_verification(server: Server, root: Administrator) -> None:
    """A paused stream keeps its events, a disabled one drops them; both are told."""
    client = signal_client(server)
    stream = client.add_stream()
    user_id = user_id_of(server, connected_user(server, client).login)

    def set_status(status: str, **fields: str) -> None:
        answer = client.call("POST", "status", json={"stream_id": stream, "status": status, **fields})
        assert answer.json() == {"stream_id": stream, "status": status, **fields}

    set_status("paused", reason="maintenance")
    assert client.call("GET", f"status?stream_id={stream}", scope="ssf.read").json()["reason"] == "maintenance"
    set_disabled(root, user_id, True)
    (paused,) = client.take(stream)
    assert paused["sub_id"] == {"format": "opaque", "id": stream}
    assert paused["events"] == {f"{SSF}stream-updated": {"status": "paused", "reason": "maintenance"}}
    set_status("enabled")
    assert sorted(names_of(client.take(stream))) == sorted(["account-disabled", "session-revoked", "stream-updated"])
    set_status("disabled")
    set_disabled(root, user_id, False)
    assert names_of(client.take(stream)) == ["stream-updated"]
    assert client.call("POST", "verify", json={"stream_id": stream}).status_code == 400
    set_status("enabled")
    assert names_of(client.take(stream)) == ["stream-updated"]
    assert client.call("POST", "verify", json={"stream_id": stream, "state": "VGhpcw"}).status_code == 204
    (verification,) = client.take(stream)
    assert verification["events"] == {f"{SSF}verification": {"state": "VGhpcw"}}
    again = client.call("POST", "verify", json={"stream_id": stream})
    query(server, "UPDATE signal_streams SET verified = now() + interval '1 hour' WHERE stream_id = $1", stream)
    again = client.call("POST", "verify", json={"stream_id": stream})
    assert (again.status_code, again.headers["Retry-After"]) == (429, "10")


def test_push_is_retried_in_order_and_rejected_events_are_dropped(server: Server, root: Administrator) -> None:
    client = signal_client(server)
    with push_receiver() as receiver:
        delivery = {"method": PUSH, "endpoint_url": receiver.url, "authorization_header": "Basic cmVjZWl2ZXI="}
        stream = client.add_stream(delivery=delivery)
        receiver.status = 500
        user_id = user_id_of(server, connected_user(server, client).login)
        set_disabled(root, user_id, True)
        assert until(lambda: state(server, stream)["problem"]) == "status 500"
        set_disabled(root, user_id, False)
        receiver.status = 202
        names = [event_of(client.claims(token))[0] for token in wait_for_tokens(receiver, 3)]
        assert names == ["account-disabled", "session-revoked", "account-enabled"]
        assert {item["Content-Type"] for item in receiver.headers} == {"application/secevent+jwt"}
        assert {item["Authorization"] for item in receiver.headers} == {"Basic cmVjZWl2ZXI="}
        reject(receiver, b'{"err": "invalid_request", "description": "unknown"}')
        set_disabled(root, user_id, True)
        assert until(lambda: "rejected" in state(server, stream)["problem"])
        assert until(lambda: state(server, stream)["waiting"] == 0)
        assert client.call("GET", f"status?stream_id={stream}").json()["status"] == "enabled"


@pytest.mark.parametrize(("body", "encoding"), [(b"x" * 100_000, "identity"), (b"accepted", "gzip")])
def test_body_of_an_answer_that_accepts_an_event_is_not_read(
    server: Server, root: Administrator, body: bytes, encoding: str
) -> None:
    client = signal_client(server)
    with push_receiver() as receiver:
        receiver.answer, receiver.answer_headers = body, {"Content-Encoding": encoding}
        stream = client.add_stream(delivery={"method": PUSH, "endpoint_url": receiver.url})
        set_disabled(root, user_id_of(server, connected_user(server, client).login), True)
        assert until(lambda: receiver.tokens and state(server, stream)["waiting"] == 0)
        assert len(receiver.tokens) == len(FIRST_NAMES)
        assert state(server, stream)["problem"] == ""


def test_stream_that_nobody_receives_is_paused(server: Server, root: Administrator) -> None:
    """It keeps what it has, gets nothing more, and is told so. Enabled again, it goes on."""
    client = signal_client(server)
    stream = client.add_stream()
    fill = """INSERT INTO signal_events (stream_id, type, txn, expires)
        SELECT $1, 'verification', 'x', now() + interval '1 day' FROM generate_series(1, 10001)"""
    query(server, fill, stream)
    server.run_with_services(lambda services: services.signals.upkeep.pause_overfull())
    found = client.call("GET", f"status?stream_id={stream}").json()
    assert found["status"] == "paused"
    assert "10000 events have not been received" in found["reason"]
    user_id = user_id_of(server, connected_user(server, client).login)
    set_disabled(root, user_id, True)
    assert state(server, stream)["waiting"] == 10002
    assert names_of(client.take(stream, returnImmediately=True)) == ["stream-updated"]
    query(server, "DELETE FROM signal_events WHERE stream_id = $1", stream)
    assert client.call("POST", "status", json={"stream_id": stream, "status": "enabled"}).status_code == 200
    set_disabled(root, user_id, False)
    assert sorted(names_of(client.take(stream))) == ["account-enabled", "stream-updated"]


def state(server: Server, stream: str) -> dict[str, Any]:
    sql = """SELECT problem, status, reason, (SELECT count(*) FROM signal_events e WHERE e.stream_id = s.stream_id)
        AS waiting FROM signal_streams s WHERE stream_id = $1"""
    (row,) = query(server, sql, stream)
    return dict(row)


def reject(receiver: PushReceiver, answer: bytes) -> None:
    receiver.answer = answer
    receiver.status = 400
