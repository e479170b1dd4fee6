"""Game sessions in the management API."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import new_user, user_id_of
from tests.kit.held import Player, Rows, new_address, new_game, rows_of
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import FACTOR, Studio

pytestmark = pytest.mark.two_workers

CLOSED = {"status": "ERROR", "error": "session closed"}


@pytest.fixture(scope="module")
def moderator(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_game_sessions")


@pytest.fixture(scope="module")
def viewer(studio: Studio) -> Administrator:
    return administrator(studio, "can_view_game_sessions")


@pytest.fixture(scope="module")
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture(scope="module")
def player_id(server: Server, login: str) -> str:
    return user_id_of(server, login)


@pytest.fixture(scope="module")
def player(server: Server, login: str) -> Player:
    return Player(server, login)


@pytest.fixture
async def rows(server: Server) -> AsyncIterator[Rows]:
    async with rows_of(server) as rows:
        yield rows


def session_of(caller: Administrator, gsid: str) -> dict[str, Any]:
    session: dict[str, Any] = caller.data(f"/game-sessions/{gsid}")
    return session


async def test_stage_follows_the_login(
    server: Server, moderator: Administrator, player: Player, player_id: str
) -> None:
    game = await new_game(server, distr="steam")
    session = session_of(moderator, game.gsid)
    assert (session["gsid"], session["stage"], session["address"]) == (game.gsid, "registered", game.address)
    assert (session["distr"], session["user_id"], session["application_id"]) == ("steam", None, None)
    assert 0 <= session["age"] < 60
    assert await player.confirm(game.gsid) == 303
    session = session_of(moderator, game.gsid)
    assert (session["stage"], session["user_id"]) == ("confirmed", player_id)
    assert (await game.poll()).outcome == "OK"
    assert until(lambda: session_of(moderator, game.gsid)["stage"] == "delivered")  # when the client acknowledges


async def test_sessions_are_filtered_and_listed_page_by_page(
    server: Server, moderator: Administrator, player: Player, player_id: str, studio: Studio
) -> None:
    address, application_id = new_address(), studio.application()
    games = [await new_game(server, address=address, app_id=application_id) for _ in range(3)]
    assert await player.deny(games[1].gsid) == 200
    first = moderator.get("/game-sessions", address=address, limit=2).json()
    second = moderator.get("/game-sessions", address=address, limit=2, after=first["next"]).json()
    assert [session["gsid"] for session in first["data"] + second["data"]] == [game.gsid for game in reversed(games)]
    assert second["next"] is None

    def found(**filters: Any) -> set[str]:
        return {session["gsid"] for session in moderator.data("/game-sessions", limit=200, **filters)}

    assert found(application_id=application_id) == {game.gsid for game in games}
    assert found(application_id=application_id, stage="denied") == {games[1].gsid}
    assert found(address=address, stage="registered") == {games[0].gsid, games[2].gsid}
    assert await player.confirm(games[0].gsid) == 303
    assert found(address=address, user_id=player_id) == {games[0].gsid}


@pytest.mark.parametrize(
    ("name", "value"),
    [("stage", "asleep"), ("address", "x"), ("after", "x"), ("application_id", "x"), ("limit", "1001"), ("state", "x")],
)
def test_invalid_filter_is_refused_with_its_name(viewer: Administrator, name: str, value: str) -> None:
    response = viewer.get("/game-sessions", **{name: value})
    assert (response.status_code, response.json()["error"].startswith(f"{name}: ")) == (400, True), response.text


async def test_gsid_is_shown_only_to_callers_who_may_terminate(
    server: Server, viewer: Administrator, moderator: Administrator
) -> None:
    """Whoever has the gsid can open the login page of the session."""
    address = new_address()
    games = [await new_game(server, address=address) for _ in range(2)]
    listed = viewer.get("/game-sessions", address=address, limit=1)
    (session,) = listed.json()["data"]
    assert "gsid" not in session
    assert [game.gsid for game in games if game.gsid in listed.text] == []
    assert session["id"] == session_of(moderator, games[1].gsid)["id"]
    assert viewer.request("DELETE", f"/game-sessions/{games[1].gsid}").status_code == 403


async def test_termination_answers_a_held_poll_on_every_worker(
    server: Server, moderator: Administrator, root: Administrator, rows: Rows
) -> None:
    for worker in server.workers():
        game = await new_game(server)
        async with await game.begin_poll(worker) as connection:
            await rows.until_polled(game.gsid)
            assert session_of(moderator, game.gsid)["polled"] is True
            ended = moderator.request("DELETE", f"/game-sessions/{game.gsid}")
            assert (ended.status_code, ended.json()["data"]["stage"]) == (200, "closed")
            answer = await connection.receive()
        assert (answer.status, {name: answer.data[name] for name in CLOSED}) == (200, CLOSED)
        (entry,) = root.data("/audit", target=game.gsid)
        assert (entry["operation"], entry["user_id"]) == ("game_session.terminate", moderator.user_id)
        assert (entry["before"]["stage"], entry["after"]["stage"]) == ("registered", "closed")


async def test_termination_closes_the_socket_on_every_worker(server: Server, moderator: Administrator) -> None:
    for worker in server.workers():
        game = await new_game(server)
        async with game.socket(worker=worker) as socket:
            await socket.event()
            assert session_of(moderator, game.gsid)["socket"] is True
            assert moderator.request("DELETE", f"/game-sessions/{game.gsid}").status_code == 200
            code, last = await socket.closed()
        assert (code, last["status"], last["error"]) == (1000, "ERROR", "session closed")


async def test_terminated_session_cannot_be_confirmed(server: Server, moderator: Administrator, player: Player) -> None:
    game = await new_game(server)
    assert moderator.request("DELETE", f"/game-sessions/{game.gsid}").status_code == 200
    await player.confirm(game.gsid)
    assert session_of(moderator, game.gsid)["stage"] == "closed"
    assert (await game.poll()).data["error"] == "session closed"


async def test_termination_of_a_delivered_login_ends_its_tokens(
    server: Server, moderator: Administrator, player: Player, studio: Studio
) -> None:
    game = await new_game(server, factor=FACTOR)
    assert await player.confirm(game.gsid) == 303
    tokens = (await game.poll()).data

    def statuses() -> list[int]:
        headers = {"Authorization": f"Bearer {tokens['jwt']}", "Factor": FACTOR}
        info = studio.client.post("/api/permissions/user/info", json={}, headers=headers)
        renewed = studio.client.post("/proxy/api/login", json={"token": tokens["token"], "factor": FACTOR})
        return [info.status_code, renewed.status_code]

    assert statuses() == [200, 200]
    ended = moderator.request("DELETE", f"/game-sessions/{game.gsid}")
    assert (ended.status_code, ended.json()["data"]["stage"]) == (200, "delivered")
    assert statuses() == [401, 401]
    assert (await game.poll()).status == 403


async def test_login_that_is_being_delivered_is_void_after_termination(
    server: Server, moderator: Administrator, player: Player, rows: Rows
) -> None:
    """The claim of a worker that was killed: the next poll must not take the login over."""
    game = await new_game(server)
    assert await player.confirm(game.gsid) == 303
    lease = "status = 'delivered', claim_id = 'claim of ' || gsid, claimed_poll = 1, poll = 1"
    sql = f"UPDATE game_sessions SET {lease}, claimed_until = now() + interval '1 s' WHERE gsid = $1"
    await rows.run(sql, game.gsid)
    assert session_of(moderator, game.gsid)["stage"] == "confirmed"
    assert moderator.request("DELETE", f"/game-sessions/{game.gsid}").json()["data"]["stage"] == "closed"
    assert (await game.poll()).data["error"] == "session closed"
    (sign_in,) = await rows.run("SELECT ended FROM sign_ins WHERE id = $1", f"claim of {game.gsid}")
    assert sign_in["ended"] is True


async def test_termination_needs_the_current_version_and_happens_once(
    server: Server, moderator: Administrator, root: Administrator, player: Player
) -> None:
    game = await new_game(server)
    path = f"/game-sessions/{game.gsid}"
    tag = moderator.get(path).headers["ETag"]
    assert await player.confirm(game.gsid) == 303
    assert moderator.request("DELETE", path, {"If-Match": tag}).status_code == 412
    assert moderator.request("DELETE", path, {"If-Match": moderator.get(path).headers["ETag"]}).status_code == 200
    assert moderator.request("DELETE", path).status_code == 200
    assert len(root.data("/audit", target=game.gsid)) == 1
    assert game.gsid not in server.log()


@pytest.mark.parametrize("gsid", ["x", "6a9ff4b2-3c1d-4e5f-8a7b-9c0d1e2f3a4b", "6A9FF4B2-3C1D-4E5F-8A7B-9C0D1E2F3A4B"])
def test_unknown_session_is_404(moderator: Administrator, gsid: str) -> None:
    assert moderator.get(f"/game-sessions/{gsid}").status_code == 404
    assert moderator.request("DELETE", f"/game-sessions/{gsid}").status_code == 404
