"""Clients of a history that change users, roles, keys and projects."""

from collections.abc import Sequence
from functools import partial

import httpx

from tests.histories.racing import at_once
from tests.histories.world import CENTRAL, CREW, GAME, LIMITED_ROLE, MEMBER_ROLE, ROOTS, World, login_of
from tests.kit.builders import PASSWORD
from tests.kit.nodes import Node

FACTOR = "a device of histories"


def take_role(members: Sequence[str], world: World, number: int) -> None:
    """Gives these users a role that fewer may have at a time, and takes it again."""
    with world.administrator(world.node()) as http:
        for operation, roles in (("join", [LIMITED_ROLE]), ("leave", [])):
            for user_id in members:
                world.history.record(operation, user_id, partial(save_roles, http, user_id, GAME, *roles))


def join_project(project_id: str, members: Sequence[str], world: World, number: int) -> None:
    """Makes these users members of a project, with a role that fewer may have at a time in all projects."""
    with world.administrator(world.node()) as http:
        path = f"/projects/{project_id}/members"
        for user_id in members:
            body = {"user_id": user_id, "roles": {"project": [MEMBER_ROLE]}}
            world.history.record("join_project", user_id, partial(http.post, path, json=body), 201)
        for user_id in members:
            world.history.record("leave_project", user_id, partial(http.delete, f"{path}/{user_id}"))


def create_keys(world: World, number: int) -> None:
    """Creates more access keys of a new application than it may have, at both nodes at once."""
    with world.administrator(world.nodes[0]) as first, world.administrator(world.nodes[1]) as second:
        created = first.post("/applications", json={"name": f"Keys {number}"}).raise_for_status()
        application_id = created.json()["data"]["application_id"]
        create = [
            partial(http.post, "/access-keys", json={"application_id": application_id})
            for http in (first, second, first, second)
        ]
        at_once(*(partial(world.history.record, "create_key", str(application_id), send, 201) for send in create))


def publish(world: World, number: int) -> None:
    """Creates more projects than a user may have, at both nodes at once."""
    user_id = world.take("publishers")
    if user_id is None:
        return
    body = {"login": login_of(user_id), "password": PASSWORD, "factor": FACTOR}
    token = world.node().http.post("/proxy/api/login", json=body).raise_for_status().json()["jwt"]

    def send(node: Node, title: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "Factor": FACTOR}
        with node.client() as http:
            return http.post("/api/permissions/publish", json={"project": title}, headers=headers)

    sends = [partial(send, world.nodes[step % 2], f"Project {step} of {user_id}") for step in range(5)]
    at_once(*(partial(world.history.record, "publish", user_id, each) for each in sends))


def disable(world: World, number: int) -> None:
    """Disables a user who was never disabled. A token of before must not sign in afterwards."""
    user_id = world.take("disabled")
    if user_id is None:
        return
    body = {"login": login_of(user_id), "password": PASSWORD}
    signed_in = world.node().http.post("/proxy/api/login", json=body).raise_for_status()
    token = {"token": signed_in.json()["token"]}
    with world.administrator(world.node()) as http:
        change = {"disabled": True}
        world.history.record("user_disabled", user_id, partial(http.patch, f"/users/{user_id}", json=change))
    for node in world.nodes:
        world.history.record("use_login", user_id, partial(node.http.post, "/proxy/api/login", json=token))


def grant(world: World, number: int) -> None:
    """Gives a user a permission whom nothing else changes."""
    user_id = world.take("granted")
    if user_id is None:
        return
    with world.administrator(world.node()) as http:
        world.history.record("permissions_changed", user_id, partial(save_roles, http, user_id, GAME, CREW))


def remove_roots(world: World, number: int) -> None:
    """Takes the role of all administrators at once, then gives it back."""
    with world.administrator(world.nodes[0]) as first, world.administrator(world.nodes[1]) as second:
        removals = [
            partial(
                world.history.record, "remove_root", f"{number}:{user_id}", partial(save_roles, http, user_id, CENTRAL)
            )
            for user_id, http in zip(ROOTS, (first, second), strict=True)
        ]
        at_once(*removals)
        for user_id in ROOTS:
            save_roles(first, user_id, CENTRAL, "root").raise_for_status()


def save_roles(http: httpx.Client, user_id: str, application_id: int, *roles: str) -> httpx.Response:
    body = {"application_id": application_id, "roles": roles}
    return http.patch(f"/users/{user_id}/permissions", json=body)
