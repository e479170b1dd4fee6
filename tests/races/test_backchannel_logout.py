"""A session ends while a site redeems its code: the site gets no tokens, or it is notified.

SSO_TEST_ROUNDS=200 gives a long run.
"""

import os

import trio

from sso.core.errors import ApiError
from sso.db.statement import Statement
from sso.services import Services
from tests.oauth.in_process import CREDENTIALS, new_code, redeem

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "4"))
_SESSION = Statement("SELECT user_id, id FROM browser_sessions ORDER BY created DESC LIMIT 1")
_SITES = Statement("SELECT count(*) FROM oauth_site_sessions WHERE sid = :sid")
_QUEUED = Statement("SELECT count(*) FROM logout_notifications WHERE sid = :sid")


async def test_site_that_signs_in_while_the_session_ends_is_notified(services: Services) -> None:
    for number in range(ROUNDS):
        code = await new_code(services, profile="oidc", backchannel_logout_uri="https://shop.example.com/logout")
        session = await services.database.row(_SESSION)
        assert session
        signed_in: list[bool] = []

        async def sign_in(code: str = code, pause_s: float = number % 5 / 1000, done: list[bool] = signed_in) -> None:
            await trio.sleep(pause_s)
            try:
                await redeem(services, CREDENTIALS, code)
                done.append(True)
            except ApiError:
                done.append(False)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sign_in)
            nursery.start_soon(services.sessions.end, session["user_id"], session["id"])
        assert await services.database.value(_SITES, sid=session["id"]) == 0
        assert await services.database.value(_QUEUED, sid=session["id"]) == int(signed_in == [True])
