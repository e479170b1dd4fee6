"""The kinds of requests of ``scripts/bench latency``: what an OAuth server has, and what only this service has.

The result of one kind is what another kind needs: a sign-in page is submitted by a login, whose code is redeemed, and
the refresh token is used from then on. The results wait in queues, so that each kind is due at its own moments.
"""

import itertools
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson

from scripts.benchmarks import game_sessions
from scripts.benchmarks.http_clients import Answer, CookieJar, RequestFailed, Scenario, get, post
from scripts.benchmarks.oauth_login import SignInPage, obtain_code, open_page, prepare, signed_in, submit, tokens_of
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.open_loop.generator import Planned, Workload

PAGE, LOGIN, REDEMPTION, REFRESH, USERINFO = "sign-in page", "login", "redemption", "refresh", "userinfo"
CHECK, POLL, CLOSE, HEARTBEAT = "check", "wake-up of a poll", "end of a game session", "heartbeat"
OAUTH_SHARES = {PAGE: 1, LOGIN: 1, REDEMPTION: 1, REFRESH: 3, USERINFO: 10}
ALL_SHARES = OAUTH_SHARES | {CHECK: 8, POLL: 2}
MAX_TOKENS = 2000
RETRY_S = 1.0


class OAuthKinds:
    """Requests of web sites and of browsers with new users."""

    def __init__(self, target: Target, prepared: int) -> None:
        """Prepares so many pages and tokens."""
        self._target = target
        self._prepared = prepared
        self._users = itertools.cycle(target.users)
        self._pages: deque[SignInPage] = deque()
        self._codes: deque[str] = deque()
        tokens = signed_in(target, prepared)
        self._refresh_tokens = deque((one["refresh_token"] for one in tokens), MAX_TOKENS)
        self._userinfo = itertools.cycle(
            [get(target.userinfo, {"Authorization": f"Bearer {one['access_token']}"}) for one in tokens]
        )
        prepare(target, (self._open_page() for _ in range(prepared)))

    def renew_codes(self) -> None:
        """Obtains codes, which are valid for a minute only."""
        self._codes.clear()
        prepare(self._target, (self._obtain_code() for _ in range(self._prepared)))

    def workload(self) -> Workload:
        return {
            PAGE: lambda: [Planned(PAGE, self._open_page())],
            LOGIN: lambda: [Planned(LOGIN, self._log_in(self._pages.popleft()))] if self._pages else [],
            REDEMPTION: lambda: [Planned(REDEMPTION, self._redeem(self._codes.popleft()))] if self._codes else [],
            REFRESH: lambda: (
                [Planned(REFRESH, self._refresh(self._refresh_tokens.popleft()))] if self._refresh_tokens else []
            ),
            USERINFO: lambda: [Planned(USERINFO, request_once(next(self._userinfo)))],
        }

    def _open_page(self) -> Scenario:
        page = yield from open_page(self._target, self._target.authorize_path(), CookieJar())
        if isinstance(page, str):
            raise RequestFailed("a new browser is signed in")
        self._pages.append(page)

    def _log_in(self, page: SignInPage) -> Scenario:
        self._codes.append((yield from submit(self._target, page, next(self._users))))

    def _obtain_code(self) -> Scenario:
        self._codes.append((yield from obtain_code(self._target, next(self._users), CookieJar())))

    def _redeem(self, code: str) -> Scenario:
        self._keep(
            tokens_of((yield post(self._target.token, self._target.code_form(code), self._target.token_headers)))
        )

    def _refresh(self, token: str) -> Scenario:
        form = {**self._target.refresh_form(), "refresh_token": token}
        answer = yield post(self._target.token, form, self._target.token_headers)
        if answer.status == 503:  # the token was not used
            self._refresh_tokens.append(token)
        self._keep(tokens_of(answer))

    def _keep(self, tokens: dict[str, Any]) -> None:
        self._refresh_tokens.append(tokens["refresh_token"])


class GameKinds:
    """Requests of games and game servers: checks of permissions, and polls that wait for the end of their session."""

    def __init__(self, check: bytes, held_s: float) -> None:
        """A session ends so long after its poll."""
        self._check = check
        self._held_s = held_s
        self._gsids: deque[str] = deque()

    def add_sessions(self, gsids: Sequence[str]) -> None:
        self._gsids.extend(gsids)

    def workload(self) -> Workload:
        return {CHECK: lambda: [Planned(CHECK, request_once(self._check))], POLL: self._poll}

    def _poll(self) -> list[Planned]:
        if not self._gsids:
            return []
        gsid = self._gsids.popleft()
        return [
            Planned(POLL, _ended_poll(gsid), held_s=self._held_s),
            _close(gsid, self._held_s),
        ]


def _close(gsid: str, after_s: float) -> Planned:
    """A game that is refused tries again, as Retry-After says: otherwise its poll would never be woken."""
    again = partial(_close, gsid, RETRY_S)
    return Planned(CLOSE, request_once(game_sessions.close(gsid)), after_s=after_s, again=again)


def request_once(request: bytes) -> Scenario:
    answer = yield request
    _require_success(answer)


def _ended_poll(gsid: str) -> Scenario:
    answer = yield game_sessions.poll(gsid)
    _require_success(answer)
    if orjson.loads(answer.body)["status"] == "RETRY":
        raise RequestFailed("the poll was answered before its session had ended")


def _require_success(answer: Answer) -> None:
    if answer.status != 200:
        raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")
