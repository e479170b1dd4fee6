"""Moves of applications between projects: the keys and rights that end, and the callers who may move."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from tests.kit.browser import query
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, ApiUser, Studio
from tests.perm.endpoints.team import Team, member, refused
from tests.perm.endpoints.tokens import ServiceKey, ip_headers


def move(caller: ApiUser, app: int, project_id: str | None, **fields: Any) -> ApiResponse:
    data = {"application_id": app, "project_id": project_id, **fields}
    return caller.call("application", action="save", data=data)


def save_as_service(studio: Studio, key: ServiceKey, app: int, about: int) -> int:
    """The status of a save of a user's secret data, with a service JWT in place of the factor."""
    user = studio.keeper
    data = {"user_id": user.user_id, "secret_data": {"application": {"canModifySchema": {"value": True}}}}
    headers = {"Service-Jwt": key.sign(studio.server, app), "Factor": ""}
    return user.call("meta/data", headers, action="save", application_id=about, data=data).status


def test_service_key_of_a_moved_application_is_not_valid_in_its_new_project(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    key = ServiceKey().trusted_by(studio, source.app)
    meta = {"name": "Shop", "private_key": "secret"}
    assert (
        studio.root.call("application", action="save", data={"application_id": source.app, "service_meta": meta}).status
        == 200
    )
    assert save_as_service(studio, key, source.app, source.app) == 200
    assert move(team.developer, source.app, destination.id).status == 200
    assert save_as_service(studio, key, source.app, destination.app) == 401
    assert save_as_service(studio, key, source.app, source.app) == 401
    assert studio.client.get(f"/api/permissions/application/publicKeys/{source.app}").json()["keys"] == []
    application = studio.root.call(
        "application", action="get", data={"application_id": source.app}, options={"full": True}
    )
    assert application.data["service_meta"] == {"name": "Shop", "public_key": ""}  # the application is still a service
    sql = "SELECT private_key_sealed FROM applications WHERE application_id = $1"
    assert query(studio.server, sql, source.app)[0][0] is None
    trail = studio.root.call("audit", data={"application_id": source.app, "operation": "application.key.remove"}).data
    assert [(entry["project_id"], entry["before"]) for entry in trail] == [(source.id, {"kid": key.kid})]


def test_service_key_that_is_saved_with_the_move_is_trusted(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio, key = team.studio, ServiceKey()
    assert move(studio.root, source.app, destination.id, service_meta={"public_key": key.pem}).status == 200
    assert save_as_service(studio, key, source.app, destination.app) == 200


def test_apply_moves_an_application_with_the_key_that_the_document_names(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio, key = team.studio, ServiceKey()
    meta = {"name": "Shop", "public_key": key.pem}
    for project_id in (source.id, destination.id):
        part = {"application_id": source.app, "project_id": project_id, "service_meta": meta}
        studio.server.apply({"applications": [part]})
    assert save_as_service(studio, key, source.app, destination.app) == 200
    studio.server.apply({"applications": [{"application_id": source.app, "project_id": source.id}]})
    assert save_as_service(studio, key, source.app, source.app) == 401


@pytest.mark.parametrize("name", ["root", "developer"])
def test_application_with_a_key_file_is_not_moved(team: Team, name: str) -> None:
    source, destination = team.project(), team.project()
    studio, key = team.studio, ServiceKey()
    file = studio.server.folder / "data" / "keys" / f"{source.app}.pem"
    file.parent.mkdir(exist_ok=True)
    file.write_text(key.pem)
    caller = studio.root if name == "root" else team.developer
    response = move(caller, source.app, destination.id)
    assert response.status == 409, response.body
    assert "key file" in response.body["error"]
    assert save_as_service(studio, key, source.app, destination.app) == 403
    file.unlink()
    assert move(caller, source.app, destination.id).status == 200


def test_apply_does_not_move_an_application_with_a_key_file(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    sql = """INSERT INTO application_keys (application_id, id, source, pem, node)
        VALUES ($1, 'kid', 'file', $2, 'another-node')"""
    query(studio.server, sql, source.app, ServiceKey().pem)
    document = {"applications": [{"application_id": source.app, "project_id": destination.id}]}
    headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
    answer = studio.client.post("/api/admin/state", json=document, headers=headers)
    assert answer.status_code == 400, answer.text
    assert "applications[0].project_id: the application has a key file" in answer.json()["error"]
    query(studio.server, "DELETE FROM application_keys WHERE node = 'another-node'")
    assert studio.client.post("/api/admin/state", json=document, headers=headers).status_code == 200


def test_developer_cannot_end_the_revoke_of_a_protected_role_by_a_move(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    studio.save_data(team.developer, source.app, roles=["chief"])
    assert source.save_access(studio.root, users=[team.developer.user_id]).status == 200
    assert source.save_actions(studio.root, ("chief", "revoke")).status == 200
    refused(source, lambda project: move(team.developer, project.app, destination.id))
    assert move(studio.root, source.app, destination.id).status == 200


def test_move_takes_away_only_roles_that_the_caller_holds(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    studio.role(1, "mover", project={"can_manage_applications": {"value": True}})
    users = [
        *source.members(developer=["mover"]),
        member(team.stranger, applications={str(source.app): ["app_admin"]}),
    ]
    assert source.save_members(studio.root, *users).status == 200
    refused(source, lambda project: move(team.developer, project.app, destination.id))
    assert move(team.manager, source.app, destination.id).status == 200


def test_signed_address_does_not_activate_roles_for_a_move(team: Team) -> None:
    source, destination = team.project(), team.project()
    studio = team.studio
    studio.role(1, "mover", project={"can_manage_applications": {"value": True}})
    keys = {"can_manage_app_api_keys": {"value": True}, "can_view_app": {"value": True}}
    studio.role(1, "office_apps", app=keys, condition={"ip": "10.0.0.0/8"})
    users = [
        *source.members(developer=["mover", "office_apps"]),
        member(team.stranger, applications={str(source.app): ["app_admin"]}),
    ]
    assert source.save_members(studio.root, *users).status == 200
    key = studio.root.call("accessKey", action="save", application_id=source.app, data={}).data
    data = {"application_id": source.app, "project_id": destination.id}
    signed = ip_headers(key, "10.1.2.3")
    refused(source, lambda _: team.developer.call("application", signed, action="save", data=data))


_BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


def write_during_move(studio: Studio, app: int, project_id: str, write: Callable[[], ApiResponse]) -> ApiResponse:
    """The response to a write that was authorized before the application moved and runs after the move."""

    async def run() -> ApiResponse:
        connection = await asyncpg.connect(studio.dsn)
        try:
            async with connection.transaction():
                sql = "UPDATE applications SET project_id = $1 WHERE application_id = $2"
                await connection.execute(sql, project_id, app)
                response = asyncio.get_running_loop().run_in_executor(None, write)
                while not response.done() and not await connection.fetchval(_BLOCKED):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await connection.close()
        return await response

    return asyncio.run(run())


def test_delete_is_a_conflict_if_the_application_moves_meanwhile(team: Team) -> None:
    source, destination = team.project(), team.studio.project(team.stranger)
    studio = team.studio

    def remove() -> ApiResponse:
        return team.developer.call("application", action="delete", data={"application_id": source.app})

    assert write_during_move(studio, source.app, destination, remove).status == 409
    application = studio.root.call("application", action="get", data={"application_id": source.app})
    assert application.data["removed"] is False


def test_save_of_a_service_is_a_conflict_if_the_application_moves_meanwhile(team: Team) -> None:
    source, destination = team.project(), team.studio.project(team.stranger)
    studio = team.studio
    service = studio.application(source.id)
    key = ServiceKey().trusted_by(studio, service)
    headers = {"Service-Jwt": key.sign(studio.server, service), "Factor": ""}
    data = {"user_id": team.viewer.user_id, "roles": ["chief"]}

    def save() -> ApiResponse:
        return team.viewer.call("meta/data", headers, action="save", application_id=source.app, data=data)

    assert write_during_move(studio, source.app, destination, save).status == 409
    assert studio.rules_of(team.viewer, source.app, "roles") == []
