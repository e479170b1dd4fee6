"""What an application loses when it moves to another project, and who may take that away."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from tests.kit.browser import query
from tests.perm.endpoints.conftest import Answer, Person, Studio
from tests.perm.endpoints.crew import Crew, member, refused
from tests.perm.endpoints.tokens import ServiceKey, ip_headers


def move(caller: Person, app: int, project_id: str | None, **fields: Any) -> Answer:
    data = {"application_id": app, "project_id": project_id, **fields}
    return caller.call("application", action="save", data=data)


def speaks(studio: Studio, key: ServiceKey, app: int, about: int) -> int:
    """The status of a save of a user's secret data, with a service JWT in place of the factor."""
    user = studio.person()
    data = {"user_id": user.user_id, "secret_data": {"application": {"canModifySchema": {"value": True}}}}
    headers = {"Service-Jwt": key.sign(studio.server, app), "Factor": ""}
    return user.call("meta/data", headers, action="save", application_id=about, data=data).status


def test_service_key_of_a_moved_application_does_not_speak_for_its_new_project(crew: Crew) -> None:
    here, there = crew.project(), crew.project()
    studio = crew.studio
    key = ServiceKey().trusted_by(studio, here.app)
    meta = {"name": "Shop", "private_key": "secret"}
    assert (
        studio.root.call("application", action="save", data={"application_id": here.app, "service_meta": meta}).status
        == 200
    )
    assert speaks(studio, key, here.app, here.app) == 200
    assert move(crew.developer, here.app, there.id).status == 200
    assert speaks(studio, key, here.app, there.app) == 401
    assert speaks(studio, key, here.app, here.app) == 401
    assert studio.client.get(f"/api/permissions/application/publicKeys/{here.app}").json()["keys"] == []
    found = studio.root.call("application", action="get", data={"application_id": here.app}, options={"full": True})
    assert found.data["service_meta"] == {"name": "Shop", "public_key": ""}  # still a service
    sql = "SELECT private_key_sealed FROM applications WHERE application_id = $1"
    assert query(studio.server, sql, here.app)[0][0] is None
    trail = studio.root.call("audit", data={"application_id": here.app, "operation": "application.key.remove"}).data
    assert [(entry["project_id"], entry["before"]) for entry in trail] == [(here.id, {"kid": key.kid})]


def test_service_key_that_comes_with_the_move_is_trusted(crew: Crew) -> None:
    here, there = crew.project(), crew.project()
    studio, key = crew.studio, ServiceKey()
    assert move(studio.root, here.app, there.id, service_meta={"public_key": key.pem}).status == 200
    assert speaks(studio, key, here.app, there.app) == 200


def test_apply_moves_an_application_with_the_key_that_the_document_names(crew: Crew) -> None:
    here, there = crew.project(), crew.project()
    studio, key = crew.studio, ServiceKey()
    meta = {"name": "Shop", "public_key": key.pem}
    for project_id in (here.id, there.id):
        part = {"application_id": here.app, "project_id": project_id, "service_meta": meta}
        studio.server.apply({"applications": [part]})
    assert speaks(studio, key, here.app, there.app) == 200
    studio.server.apply({"applications": [{"application_id": here.app, "project_id": here.id}]})
    assert speaks(studio, key, here.app, here.app) == 401


@pytest.mark.parametrize("who", ["root", "developer"])
def test_application_with_a_key_file_is_not_moved(crew: Crew, who: str) -> None:
    here, there = crew.project(), crew.project()
    studio, key = crew.studio, ServiceKey()
    file = studio.server.folder / "data" / "keys" / f"{here.app}.pem"
    file.parent.mkdir(exist_ok=True)
    file.write_text(key.pem)
    caller = studio.root if who == "root" else crew.developer
    answer = move(caller, here.app, there.id)
    assert answer.status == 409, answer.body
    assert "key file" in answer.body["error"]
    assert speaks(studio, key, here.app, there.app) == 403
    file.unlink()
    assert move(caller, here.app, there.id).status == 200


@pytest.mark.parametrize("action", [("chief", "revoke"), ("guard", "grant")])
def test_developer_cannot_end_grants_and_revokes_by_a_move(crew: Crew, action: tuple[str, str]) -> None:
    here, there = crew.project(), crew.project()
    studio = crew.studio
    studio.save_data(crew.developer, here.app, roles=["chief"])
    suspended = crew.developer if action[1] == "revoke" else crew.stranger
    assert here.save_access(studio.root, users=[suspended.user_id]).status == 200
    assert here.save_actions(studio.root, action).status == 200
    refused(here, lambda made: move(crew.developer, made.app, there.id))
    assert move(studio.root, here.app, there.id).status == 200


def test_move_takes_away_only_roles_that_the_caller_holds(crew: Crew) -> None:
    here, there = crew.project(), crew.project()
    studio = crew.studio
    studio.role(1, "mover", project={"can_manage_applications": {"value": True}})
    users = [
        *here.members(developer=["mover"]),
        member(crew.stranger, applications={str(here.app): ["app_admin"]}),
    ]
    assert here.save_members(studio.root, *users).status == 200
    refused(here, lambda made: move(crew.developer, made.app, there.id))
    assert move(crew.manager, here.app, there.id).status == 200


def test_signed_address_does_not_help_to_take_roles_away(crew: Crew) -> None:
    here, there = crew.project(), crew.project()
    studio = crew.studio
    studio.role(1, "mover", project={"can_manage_applications": {"value": True}})
    keys = {"can_manage_app_api_keys": {"value": True}, "can_view_app": {"value": True}}
    studio.role(1, "office_apps", app=keys, condition={"ip": "10.0.0.0/8"})
    users = [
        *here.members(developer=["mover", "office_apps"]),
        member(crew.stranger, applications={str(here.app): ["app_admin"]}),
    ]
    assert here.save_members(studio.root, *users).status == 200
    key = studio.root.call("accessKey", action="save", application_id=here.app, data={}).data
    data = {"application_id": here.app, "project_id": there.id}
    signed = ip_headers(key, "10.1.2.3")
    refused(here, lambda _: crew.developer.call("application", signed, action="save", data=data))


_BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


def while_it_moves(studio: Studio, app: int, project_id: str, write: Callable[[], Answer]) -> Answer:
    """The answer to a write that was judged before the application moved, and is carried out after that."""

    async def run() -> Answer:
        connection = await asyncpg.connect(studio.dsn)
        try:
            async with connection.transaction():
                sql = "UPDATE applications SET project_id = $1 WHERE application_id = $2"
                await connection.execute(sql, project_id, app)
                answer = asyncio.get_running_loop().run_in_executor(None, write)
                while not answer.done() and not await connection.fetchval(_BLOCKED):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await connection.close()
        return await answer

    return asyncio.run(run())


def test_application_that_moves_meanwhile_is_not_removed(crew: Crew) -> None:
    here, there = crew.project(), crew.studio.project(crew.stranger)
    studio = crew.studio

    def remove() -> Answer:
        return crew.developer.call("application", action="delete", data={"application_id": here.app})

    assert while_it_moves(studio, here.app, there, remove).status == 409
    found = studio.root.call("application", action="get", data={"application_id": here.app})
    assert found.data["removed"] is False


def test_service_of_the_old_project_does_not_save_permissions_after_a_move(crew: Crew) -> None:
    here, there = crew.project(), crew.studio.project(crew.stranger)
    studio = crew.studio
    service = studio.application(here.id)
    key = ServiceKey().trusted_by(studio, service)
    headers = {"Service-Jwt": key.sign(studio.server, service), "Factor": ""}
    data = {"user_id": crew.viewer.user_id, "roles": ["chief"]}

    def save() -> Answer:
        return crew.viewer.call("meta/data", headers, action="save", application_id=here.app, data=data)

    assert while_it_moves(studio, here.app, there, save).status == 409
    assert studio.rules_of(crew.viewer, here.app, "roles") == []
