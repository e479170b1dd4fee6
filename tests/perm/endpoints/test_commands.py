"""A running server uses what commands change in the next request."""

from collections.abc import Callable

import pytest

from tests.perm.endpoints.conftest import ApiUser, Studio

Sso = Callable[..., str]


@pytest.fixture
def sso(studio: Studio) -> Sso:
    """Runs a command beside the server and returns its output."""
    return lambda *arguments: studio.server.sso(*arguments).stdout


def test_running_server_uses_changes_of_commands_at_once(studio: Studio, sso: Sso) -> None:
    player = studio.user(login="kim@commands.example")
    project_id = sso("project", "add", "Commands", "--admin", studio.keeper.user_id).split()[-1]
    app_id = int(sso("app", "add", "Tanks", "--project", project_id).split()[-1])
    app = ("--app", str(app_id))
    assert studio.rules_of(player, app_id) == []
    sso("role", "add", "moderator", *app, "--rule", "chat.kick")
    group_id = sso("group", "add", "Staff", "--project", project_id).split()[-1]
    sso("group", "role", "add", group_id, "moderator", *app)
    assert studio.rules_of(player, app_id) == []
    sso("group", "condition", "add", group_id, "staff", "domain=commands.example")
    assert studio.rules_of(player, app_id) == ["chat.kick"]
    sso("role", "change", "moderator", *app, "--rule", "chat.mute")
    assert studio.rules_of(player, app_id) == ["chat.kick", "chat.mute"]
    sso("group", "delete", group_id, "--yes")
    assert studio.rules_of(player, app_id) == []
    sso("role", "assign", player.user_id, "moderator", *app)
    assert studio.rules_of(player, app_id) == ["chat.kick", "chat.mute"]
    sso("role", "delete", "moderator", *app, "--yes")
    assert studio.rules_of(player, app_id) == []


def test_member_may_use_the_project_until_a_command_removes_the_role(studio: Studio, sso: Sso) -> None:
    project_id = studio.project()
    viewer = studio.user()
    assert _status(viewer, project_id) == 403
    sso("project", "member", "add", project_id, viewer.login, "viewer")
    assert _status(viewer, project_id) == 200
    sso("project", "member", "delete", project_id, viewer.login)
    assert _status(viewer, project_id) == 403


def _status(user: ApiUser, project_id: str) -> int:
    return user.call("project", action="get", data={"id": project_id}).status
