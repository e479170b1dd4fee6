"""An administrator who gives and takes roles, one of which may be held by a few users only."""

import random
from collections.abc import Sequence
from typing import Any

import httpx

from scripts.local_cluster.clients import PASSWORD, request
from scripts.local_cluster.ledger import Ledger

LOGIN = "load-admin@example.com"
FACTOR = "load"
APPLICATION = 10  # of the demo data
LIMITED, FREE = "load_limited", "load_free"
LIMIT = 3
_LOGIN_BODY = {"login": LOGIN, "password": PASSWORD, "factor": FACTOR}


class Administrator:
    def __init__(self, http: httpx.AsyncClient, ledger: Ledger) -> None:
        self._http = http
        self._ledger = ledger
        self._jwt = ""

    async def create_roles(self) -> None:
        for name, limit in ((LIMITED, LIMIT), (FREE, 0)):
            answer = await self._call(
                "roles", action="save", application_id=APPLICATION, data={"name": name, "user_limit": limit, "meta": {}}
            )
            assert answer.status_code == 200, answer.text

    async def save_random_roles(self, user_id: str) -> None:
        await self.save(user_id, [name for name in (LIMITED, FREE) if random.random() < 0.5])

    async def save(self, user_id: str, names: Sequence[str]) -> None:
        """Saves the roles of a user, again until the service has answered. Repeating it changes nothing."""
        roles = [{"name": name} for name in names]
        data = {"user_id": user_id, "roles": roles}
        answer = await self._call("meta/data", action="save", application_id=APPLICATION, data=data)
        if answer.status_code == 200:
            self._ledger.roles[user_id] = set(names)
        elif answer.status_code == 409 or "limit" in answer.text:
            self._ledger.refused_by_limit += 1
        else:
            self._ledger.lost.append(f"roles of {user_id}: {answer.status_code} {answer.text}")

    async def roles(self, user_id: str) -> set[str]:
        data = {"user_id": user_id, "type": "roles"}
        answer = await self._call("meta/data", action="get", application_id=APPLICATION, data=data)
        found = answer.json()["data"]
        return {role if isinstance(role, str) else role["name"] for role in found} & {LIMITED, FREE}

    async def _call(self, path: str, **body: Any) -> Any:
        while True:
            if not self._jwt:
                answer = await request(self._http, self._ledger, "POST", "/proxy/api/login", json=_LOGIN_BODY)
                self._jwt = answer.json()["jwt"]
            headers = {"Authorization": f"Bearer {self._jwt}", "Factor": FACTOR}
            url = f"/api/permissions/{path}"
            response = await request(self._http, self._ledger, "POST", url, json=body, headers=headers)
            if response.status_code != 401:
                return response
            self._jwt = ""
