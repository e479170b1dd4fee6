"""Projects, their members and their groups. Each operation in every way."""

from tests.adapters.operation import (
    Operation,
    group,
    groups_of,
    joined,
    member,
    members,
    membership,
    project,
    user_and_group,
)

PROJECTS = (
    Operation(
        "create a project",
        project,
        api=lambda case: case.api(
            "POST", "/projects", title=case.project_id, admins=[case.world.studio.keeper.user_id]
        ),
        document=lambda case: case.project(),
        command=lambda case: f"project add {case.project_id} --admin {case.world.studio.keeper.user_id}",
    ),
    Operation(
        "change a project",
        project,
        lambda case: case.project(),
        endpoint=lambda case: case.endpoint(
            "project",
            action="save",
            data={"id": case.project_id, "description": "A game", "aliases": [f"a{case.number}"]},
        ),
        api=lambda case: case.api(
            "PATCH", f"/projects/{case.project_id}", description="A game", aliases=[f"a{case.number}"]
        ),
        document=lambda case: case.apply(
            projects=[{"title": case.project_id, "description": "A game", "aliases": [f"a{case.number}"]}]
        ),
        command=lambda case: f"project change {case.project_id} --description 'A game' --alias a{case.number}",
    ),
    Operation(
        "name a project in any script",
        project,
        lambda case: case.project(),
        api=lambda case: case.api("PATCH", f"/projects/{case.project_id}", display_name="夜の港: Reborn"),
        document=lambda case: case.apply(projects=[{"title": case.project_id, "display_name": "夜の港: Reborn"}]),
        command=lambda case: f"project change {case.project_id} --display-name '夜の港: Reborn'",
    ),
    Operation(
        "delete a project",
        project,
        lambda case: case.project(),
        endpoint=lambda case: case.endpoint("project", action="delete", data={"id": case.project_id}),
        api=lambda case: case.api("DELETE", f"/projects/{case.project_id}"),
        command=lambda case: f"project delete {case.project_id} --yes",
        console=lambda case: case.deletion(f"/console/projects/{case.project_id}/delete"),
    ),
    Operation(
        "add a member",
        members,
        member,
        endpoint=lambda case: case.endpoint(
            "project/membership",
            action="save",
            data={"id": case.project_id, "users": membership(case, {"project": ["viewer"]})},
        ),
        api=lambda case: case.api(
            "POST", f"/projects/{case.project_id}/members", user_id=case.user_id, roles={"project": ["viewer"]}
        ),
        document=lambda case: case.apply(
            memberships=[{"id": case.project_id, "users": membership(case, {"project": ["viewer"]})}]
        ),
        command=lambda case: f"project member add {case.project_id} {case.user_id} viewer",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/members/new",
            f"/console/projects/{case.project_id}/members",
            user=case.user_id,
            role="viewer",
        ),
    ),
    Operation(
        "remove a member",
        members,
        joined,
        endpoint=lambda case: case.endpoint(
            "project/membership", action="save", data={"id": case.project_id, "users": membership(case, {})}
        ),
        api=lambda case: case.api("DELETE", f"/projects/{case.project_id}/members/{case.user_id}"),
        document=lambda case: case.apply(memberships=[{"id": case.project_id, "users": membership(case, {})}]),
        command=lambda case: f"project member delete {case.project_id} {case.user_id}",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}",
            f"/console/projects/{case.project_id}/members/{case.user_id}/remove",
        ),
    ),
    Operation(
        "create a group",
        groups_of,
        lambda case: case.project(),
        endpoint=lambda case: case.endpoint(
            "group", action="save", data={"project_id": case.project_id, "title": "Testers"}
        ),
        api=lambda case: case.api("POST", "/groups", project_id=case.project_id, title="Testers"),
        document=lambda case: case.apply(
            groups=[{"group_id": case.group_id, "project_id": case.project_id, "title": "Testers"}]
        ),
        command=lambda case: f"group add Testers --project {case.project_id}",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups/new",
            f"/console/projects/{case.project_id}/groups",
            title="Testers",
        ),
    ),
    Operation(
        "change a group",
        group,
        lambda case: case.group(),
        endpoint=lambda case: case.endpoint(
            "group", action="save", group_id=case.group_id, data={"title": "Testers", "description": "They test"}
        ),
        api=lambda case: case.api("PATCH", f"/groups/{case.group_id}", title="Testers", description="They test"),
        document=lambda case: case.apply(
            groups=[{"group_id": case.group_id, "title": "Testers", "description": "They test"}]
        ),
        command=lambda case: f"group change {case.group_id} --title Testers --description 'They test'",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            title="Testers",
            description="They test",
        ),
    ),
    Operation(
        "add a user to a group",
        group,
        user_and_group,
        endpoint=lambda case: case.endpoint("group/access", group_id=case.group_id, data={"users": [case.user_id]}),
        api=lambda case: case.api("PATCH", f"/groups/{case.group_id}", users=[case.user_id]),
        document=lambda case: case.apply(groups=[{"group_id": case.group_id, "users": [case.user_id]}]),
        command=lambda case: f"group member add {case.group_id} {case.user_id}",
        console=lambda case: case.form(
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            f"/console/projects/{case.project_id}/groups/{case.group_id}",
            users=case.user_id,
        ),
    ),
    Operation(
        "delete a group",
        group,
        lambda case: case.group(),
        endpoint=lambda case: case.endpoint("group", action="delete", group_id=case.group_id, data={}),
        api=lambda case: case.api("DELETE", f"/groups/{case.group_id}"),
        command=lambda case: f"group delete {case.group_id} --yes",
        console=lambda case: case.deletion(f"/console/projects/{case.project_id}/groups/{case.group_id}/delete"),
    ),
)
