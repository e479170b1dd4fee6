"""Invitations: who may invite whom."""

from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest

from sso.admin.caller import AdminCaller
from sso.admin.request import AdminRequest, AdminResponse
from sso.admin.rights import AdminRight
from sso.config import Settings
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError, InvalidCursor
from sso.perm.caller import Caller
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.kit.builders import add_user

ROLE = {
    "name": "staff",
    "meta": {"private_data": {"can_view_audit": {"value": True}}},
    "condition": {"domain": "staff.example"},
}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, registration="invite")


async def call(
    services: Services,
    name: str,
    body: Any = None,
    *,
    is_root: bool = False,
    query: dict[str, Any] | None = None,
    **path: str,
) -> AdminResponse:
    method, _, route_path = name.partition(" ")
    route = next(row for row in services.management.routes if (row.method, row.path) == (method, route_path))
    rights = frozenset({AdminRight.VIEW_USERS, AdminRight.MANAGE_USERS})
    permissions = Caller("1", ip_address("127.0.0.1"), has_factor=True, in_management=True)
    caller = AdminCaller(permissions.actor, rights, frozenset(rights), is_root, permissions)
    part = route.body.model_validate(body) if route.body else None
    return await route.handler(AdminRequest(caller, path, route.query.model_validate(query or {}), part))


async def test_invitation_is_listed_and_revoked(services: Services) -> None:
    created = await call(services, "POST /invitations", {"login": "new@example.com", "days": 3, "lang": "de"})
    assert created.members["data"]["link"].startswith(services.settings.base_url)
    [invitation] = (await call(services, "GET /invitations")).members["data"]
    assert invitation["login"] == "new@example.com"
    await call(services, "DELETE /invitations/<invitation_id>", invitation_id=invitation["id"])
    assert (await call(services, "GET /invitations")).members["data"] == []
    with pytest.raises(NotFound):
        await call(services, "DELETE /invitations/<invitation_id>", invitation_id=invitation["id"])


async def test_invitations_are_listed_page_by_page(services: Services) -> None:
    for number in range(5):
        await call(services, "POST /invitations", {"login": f"guest{number}@example.com"})
    found: list[str] = []
    after = ""
    for size in (2, 2, 1):
        page = (await call(services, "GET /invitations", query={"limit": 2, "after": after})).members
        assert len(page["data"]) == size
        found += [invitation["login"] for invitation in page["data"]]
        after = page["next"] or ""
    assert after == ""
    assert found == [f"guest{number}@example.com" for number in range(5)]
    for wrong in ("x", "1", "x/y", "-1/y", "99999999999999999999/y"):
        with pytest.raises(InvalidCursor):
            await call(services, "GET /invitations", query={"after": wrong})


async def test_login_of_a_user_cannot_be_invited(services: Services) -> None:
    user = await add_user(services)
    with pytest.raises(FieldError, match="login: is used by another user"):
        await call(services, "POST /invitations", {"login": user.login})


async def test_nobody_invites_a_user_with_more_rights(services: Services) -> None:
    """A caller could use the link, and would have the rights that a condition on the address gives."""
    await Applier(services.database, services.hasher, services.operations).apply(parse({"roles": {"1": [ROLE]}}))
    with pytest.raises(Forbidden, match="can_view_audit is required"):
        await call(services, "POST /invitations", {"login": "new@staff.example"})
    assert await services.users.get_by_login("new@staff.example") is None
    assert (await call(services, "POST /invitations", {"login": "new@staff.example"}, is_root=True)).status == 201


async def test_erasure_deletes_the_invitations_of_the_address_and_its_audit_entries_lose_it(services: Services) -> None:
    ann, other = "ann@example.com", "jo-ann@example.com"
    for login in (ann, "Ann@EXAMPLE.com", ann, other):
        await call(services, "POST /invitations", {"login": login})
    (revoked, *_) = (await call(services, "GET /invitations")).members["data"]
    await call(services, "DELETE /invitations/<invitation_id>", invitation_id=revoked["id"])
    user = await add_user(services, login=ann)
    run = services.database.run_sql
    await run("UPDATE users SET disabled = true, deletion_due = now() WHERE user_id = $1", [user.user_id])
    assert await services.erasure.erase_due() == 1
    assert [one["login"] for one in (await call(services, "GET /invitations")).members["data"]] == [other]
    assert await run("SELECT FROM mailed_links WHERE data ->> 'login' <> $1", [other]) == []
    entries = await run("SELECT operation, target FROM audit WHERE operation LIKE 'invitation.%' ORDER BY id", [])
    assert [tuple(entry) for entry in entries] == [
        *[("invitation.create", "erased")] * 3,
        ("invitation.create", other),
        ("invitation.delete", "erased"),
    ]
