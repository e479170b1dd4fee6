"""The game session: one decision of one player, one delivery to the game that registered it."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, initialize, multiple, precondition, rule

from tests.kit.browser import Browser, fresh_browser, new_user
from tests.kit.game import Game, Session, outcome, press_continue, violation
from tests.kit.server import Server
from tests.models.machine import ServiceMachine, check_model

MAX_SESSIONS = 3  # so that a sequence uses the same session often
PLAYERS = ("Ann", "Bob")
ENDED = {"denied": ("ERROR", "session denied"), "closed": ("ERROR", "session closed")}


@dataclass
class Attempt:
    session: Session
    state: str = "pending"
    player: str = ""


class GameSession(ServiceMachine):
    attempts = Bundle("attempts")

    def __init__(self) -> None:
        super().__init__()
        self.game, self.thief = Game(self.server), Game(self.server)
        self.browsers: dict[str, Browser] = {
            name: fresh_browser(self.server, new_user(self.server, nick=name)) for name in PLAYERS
        }
        self.count = 0

    @initialize(target=attempts)
    def register_two(self) -> MultipleResults[Attempt]:
        return multiple(self._register(), self._register())

    @precondition(lambda self: self.count < MAX_SESSIONS)
    @rule(target=attempts)
    def register(self) -> Attempt:
        return self._register()

    def _register(self) -> Attempt:
        self.count += 1
        return Attempt(self.game.register())

    @rule(attempt=attempts, player=st.sampled_from(PLAYERS))
    def confirm(self, attempt: Attempt, player: str) -> None:
        """Only the first decision counts."""
        browser = self.browsers[player]
        if attempt.state == "pending":
            press_continue(browser, attempt.session)
            attempt.state, attempt.player = "confirmed", player
        else:
            page = browser.http.get(attempt.session.page, follow_redirects=True)
            assert f"{attempt.session.decision}/continue" not in page.text

    @rule(attempt=attempts, player=st.sampled_from(PLAYERS))
    def deny(self, attempt: Attempt, player: str) -> None:
        browser, action = self.browsers[player], f"{attempt.session.decision}/deny"
        if attempt.state == "pending":
            browser.follow(browser.get(attempt.session.page))
            assert browser.submit(action).status_code == 200
            attempt.state = "denied"
        else:
            page = browser.http.get(attempt.session.page, follow_redirects=True)
            assert action not in page.text

    @rule(attempt=attempts)
    def poll(self, attempt: Attempt) -> None:
        answer = attempt.session.poll()
        if attempt.state == "delivered":
            violation(answer)
        elif attempt.state == "confirmed":
            assert answer.json()["status"] == "OK", answer.text
            assert answer.json()["nick"] == attempt.player
            attempt.state = "delivered"
        else:
            assert outcome(answer) == ENDED.get(attempt.state, ("RETRY", ""))

    @rule(attempt=attempts)
    def poll_from_elsewhere(self, attempt: Attempt) -> None:
        """Somebody who has read the link gets nothing, and takes nothing from the game."""
        session = attempt.session
        stolen = Session(self.thief, session.gsid, session.match, session.location)
        violation(stolen.poll())
        violation(stolen.close())

    @rule(attempt=attempts)
    def close(self, attempt: Attempt) -> None:
        """Withdraws a login that was not delivered. A game may report its result afterwards, too."""
        answer = attempt.session.close()
        assert answer.status_code == 200, answer.text
        if attempt.state in ("pending", "confirmed"):
            attempt.state = "closed"

    def teardown(self) -> None:
        for http in (self.game.http, self.thief.http, *(browser.http for browser in self.browsers.values())):
            http.close()


def test_game_session(server: Server) -> None:
    check_model(GameSession, server)
