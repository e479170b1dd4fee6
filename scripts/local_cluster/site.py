"""A web site that signs players in, refreshes their tokens and revokes some of them."""

import re
from typing import Any
from urllib.parse import urlencode

import httpx

from scripts.local_cluster.clients import Player, request
from scripts.local_cluster.ledger import Ledger

CLIENT_ID = "load-site"
CLIENT_SECRET = "a secret of the load site"
REDIRECT_URI = "http://127.0.0.1:9/callback"
CLIENT = {
    "client_id": CLIENT_ID,
    "client_secret": CLIENT_SECRET,
    "redirect_hosts": ["127.0.0.1"],
    "profile": "oidc",
    "consent": False,
}
REFRESHES = 3
_CODE = re.compile(r"[?&]code=([^&#]+)")


class Site:
    def __init__(self, http: httpx.AsyncClient, ledger: Ledger) -> None:
        self._http = http
        self._ledger = ledger

    async def visit(self, player: Player, number: int) -> None:
        """A sign-in and some refreshes. What got no answer is given up: it may have happened or not."""
        code = _CODE.search(await player.redirect(f"/proxy/oauth/authorize?{urlencode(_query(number))}"))
        tokens = (
            await self._token(grant_type="authorization_code", code=code[1], redirect_uri=REDIRECT_URI)
            if code
            else None
        )
        for _ in range(REFRESHES):
            if tokens is None:
                return
            tokens = await self._token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
        if tokens is None:
            return
        token = tokens["refresh_token"]
        if number % 2:
            if await self._post("token/revoke", refresh_token=token) is not None:
                self._ledger.revoked.append(token)
        else:
            self._ledger.refresh_tokens.append(token)

    async def refreshes(self, token: str) -> bool:
        """Returns whether the service accepts a refresh token."""
        fields = {"grant_type": "refresh_token", "refresh_token": token} | _credentials()
        response = await request(self._http, self._ledger, "POST", "/proxy/oauth/token", data=fields)
        return bool(response.status_code == 200)

    async def _token(self, **fields: str) -> dict[str, Any] | None:
        response = await self._post("token", **fields)
        if response is None:
            return None
        if response.status_code != 200:
            self._ledger.lost.append(f"{fields['grant_type']}: {response.text}")
            return None
        self._ledger.tokens_issued += 1
        body: dict[str, Any] = response.json()
        return body

    async def _post(self, path: str, **fields: str) -> Any:
        content = {"data": fields | _credentials()}
        return await request(self._http, self._ledger, "POST", f"/proxy/oauth/{path}", repeat=False, **content)


def _credentials() -> dict[str, str]:
    return {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


def _query(number: int) -> dict[str, str]:
    return {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT_URI,
        "scope": "openid offline_access",
        "state": f"state-{number}",
        "nonce": f"nonce-{number}",
    }
