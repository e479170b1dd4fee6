"""Applications, their roles, and the assignment of roles. Each operation in every way."""

from tests.adapters.operation import Operation, application, assignable, assigned, permissions, role
from tests.adapters.world import RULES

APPLICATIONS = (
    Operation(
        "change an application",
        application,
        lambda case: case.application(),
        endpoint=lambda case: case.endpoint(
            "application",
            action="save",
            data={"application_id": case.application_id, "name": f"app{case.number}", "description": "A game"},
        ),
        api=lambda case: case.api("PATCH", f"/applications/{case.application_id}", description="A game"),
        document=lambda case: case.apply(
            applications=[{"application_id": case.application_id, "description": "A game"}]
        ),
    ),
    Operation(
        "create a role",
        role,
        lambda case: case.application(),
        endpoint=lambda case: case.endpoint(
            "roles", action="save", application_id=case.application_id, data={"name": "scout", "meta": RULES}
        ),
        api=lambda case: case.api("POST", "/roles", application_id=case.application_id, name="scout", meta=RULES),
        document=lambda case: case.apply(roles={str(case.application_id): [{"name": "scout", "meta": RULES}]}),
        command=lambda case: f"role add scout --app {case.application_id} --rule chat.mute",
    ),
    Operation(
        "change a role",
        role,
        lambda case: case.role(),
        endpoint=lambda case: case.endpoint(
            "roles",
            action="save",
            application_id=case.application_id,
            data={"name": "scout", "meta": RULES, "description": "Looks around"},
        ),
        api=lambda case: case.api("PATCH", f"/roles/{case.application_id}/scout", description="Looks around"),
        document=lambda case: case.apply(
            roles={str(case.application_id): [{"name": "scout", "meta": RULES, "description": "Looks around"}]}
        ),
        command=lambda case: f"role change scout --app {case.application_id} --description 'Looks around'",
        console=lambda case: case.form(
            f"/console/applications/{case.application_id}/roles/scout",
            f"/console/applications/{case.application_id}/roles/scout",
            description="Looks around",
        ),
    ),
    Operation(
        "delete a role",
        role,
        lambda case: case.role(),
        endpoint=lambda case: case.endpoint(
            "roles", action="delete", application_id=case.application_id, data={"name": "scout"}
        ),
        api=lambda case: case.api("DELETE", f"/roles/{case.application_id}/scout"),
        command=lambda case: f"role delete scout --app {case.application_id} --yes",
        console=lambda case: case.deletion(f"/console/applications/{case.application_id}/roles/scout/delete"),
    ),
    Operation(
        "assign a role",
        permissions,
        assignable,
        endpoint=lambda case: case.endpoint(
            "meta/data",
            action="save",
            application_id=case.application_id,
            data={"user_id": case.user_id, "roles": ["scout"]},
        ),
        api=lambda case: case.api(
            "PATCH", f"/users/{case.user_id}/permissions", application_id=case.application_id, roles=["scout"]
        ),
        document=lambda case: case.apply(
            permissions=[{"user_id": case.user_id, "application_id": case.application_id, "data": {"roles": ["scout"]}}]
        ),
        command=lambda case: f"role assign {case.user_id} scout --app {case.application_id}",
    ),
    Operation(
        "unassign a role",
        permissions,
        assigned,
        endpoint=lambda case: case.endpoint(
            "meta/data", action="save", application_id=case.application_id, data={"user_id": case.user_id, "roles": []}
        ),
        api=lambda case: case.api(
            "PATCH", f"/users/{case.user_id}/permissions", application_id=case.application_id, roles=[]
        ),
        document=lambda case: case.apply(
            permissions=[{"user_id": case.user_id, "application_id": case.application_id, "data": {"roles": []}}]
        ),
        command=lambda case: f"role unassign {case.user_id} scout --app {case.application_id}",
    ),
)
