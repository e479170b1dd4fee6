"""A new user may have permissions at once: assertions are checked, and the change stream tells."""

import json
from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator, root
from tests.change_stream.conftest import changes_of, newest_cursor
from tests.kit.permission_changes import put
from tests.perm.endpoints.conftest import Studio

__all__ = ["root"]


def tag_of(application_id: int) -> str:
    return f"stoker{application_id}"  # no other test uses it


@pytest.fixture
def app(studio: Studio, root: Administrator) -> int:
    """An application where a tag gives a rule that only the staff may have."""
    application_id = studio.application()
    studio.role(application_id, "staff", "play")
    studio.role(application_id, "heated", "play", condition={"tag": tag_of(application_id)})
    assert put(root, application_id, "only staff may play").status_code == 200
    return application_id


def create(root: Administrator, login: str, **fields: Any) -> httpx.Response:
    return root.request("POST", "/users", json={"login": login, **fields})


def forget_assertions(root: Administrator, app: int) -> None:
    assert put(root, app).status_code == 200


def test_creation_that_breaks_an_assertion_is_refused(root: Administrator, app: int) -> None:
    login = f"fay{app}@changes.example"
    refused = create(root, login, tags=[tag_of(app)])
    assert (refused.status_code, "'only staff may play' would fail" in refused.text) == (409, True)
    assert root.data("/users", search=login) == []
    start = newest_cursor(root)
    created = create(root, login, tags=[tag_of(app)], override=True)
    assert created.status_code == 201, created.text
    user_id = created.json()["data"]["user_id"]
    operations = [entry["operation"] for entry in root.data("/audit", target=str(app))]
    assert "assertions.override" in operations
    [event] = changes_of(root, start, user_id, 1)
    assert (event["application_id"], event["gained"], event["lost"]) == (app, ["private_data.play"], [])
    forget_assertions(root, app)
    plain = create(root, f"gil{app}@changes.example")
    assert plain.status_code == 201


def test_user_id_in_a_condition_is_seen(studio: Studio, root: Administrator) -> None:
    app, user_id = studio.application(), "7654321987"
    studio.role(app, "chosen", "play", condition={"uid": [user_id]})
    start = newest_cursor(root)
    assert create(root, "hal@changes.example", user_id=user_id).status_code == 201
    [event] = [event for event in changes_of(root, start, user_id, 1) if event["application_id"] == app]
    assert event["gained"] == ["private_data.play"]


def test_document_with_a_new_user_is_checked(studio: Studio, root: Administrator, app: int, tmp_path: Any) -> None:
    login = f"ida{app}@changes.example"
    document = tmp_path / "state.json"
    document.write_text(json.dumps({"users": [{"login": login, "tags": [tag_of(app)]}]}))
    refused = studio.server.sso("apply", str(document), check=False)
    assert (refused.returncode, "'only staff may play' would fail" in refused.stderr) == (1, True)
    assert root.data("/users", search=login) == []
    forget_assertions(root, app)
    start = newest_cursor(root)
    studio.server.sso("apply", str(document))
    [user] = root.data("/users", search=login)
    events = [event for event in changes_of(root, start, user["user_id"], 1) if event["application_id"] == app]
    assert [event["gained"] for event in events] == [["private_data.play"]]
