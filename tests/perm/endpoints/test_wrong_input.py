"""Invalid input always gets a 4xx in the envelope of §4.1, never a 5xx, and changes nothing.

More than 300 lines, because the tests share the valid bodies of all endpoints.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.long_tests import usual_part
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio

# One value of each JSON type; a field accepts values of its own type only.
KINDS: dict[str, Any] = {
    "null": None,
    "bool": True,
    "int": -7,
    "float": 1.5,
    "str": "\u00e9 ./|:,'\"; --%_\\",
    "list": [[]],
    "obj": {"": {}},
}
PATHS = (
    "application", "application/tags", "user/info", "meta/data", "publish", "project", "project/membership", "group",
    "group/access", "group/tags", "accessKey", "roles", "meta/schema", "audit",
)  # fmt: skip


class Bodies:
    """A valid body for every endpoint and action; tests replace parts of it by invalid values."""

    def __init__(self, studio: Studio) -> None:
        project, keeper = studio.project(), studio.keeper.user_id
        app, group = studio.application(project), studio.group(project, keeper, tags=("project",))
        others = studio.group(project, tags=("project",))
        assert studio.root.call("application/tags", application_id=app, data={"tags": []}).status == 200
        studio.role(app, "guard", "patrol")
        action = {"group_id": group, "role": "guard", "action": "grant"}
        roles = {"project": ["admin", {"name": "viewer", "ttl": 5, "expired": 5}]}
        resources = {"applications": {str(app): ["viewer"]}, "services": {str(app): ["viewer"]}}
        condition = {
            "domain": "a.b", "uid": ["5"], "tag": "x", "purchase": "x", "everyone": True,
            "and": [{"tag": "x"}], "or": [{"tag": "x"}],
        }  # fmt: skip
        titled = {"title": "x", "condition": condition}
        rule = {"value": True, "params": "x"}
        meta = {
            "name": "x", "description": "x", "doc": "https://a.b", "url": "https://a.b", "env": "x", "tags": ["x"],
            "public_key": "x", "private_key": "x", "config_schema": {"any": "thing"},
        }  # fmt: skip
        settings = {
            "gdpr": {
                "char_sources": ["https://a.b"],
                "data_sources": [{"fetch": "https://a.b", "remove": "https://a.b"}],
            },
            "restricted_domains": ["a.b"],
        }
        own = {
            "roles": [{"name": "guard", "expired": 5, "ttl": 5}],
            "public_data": {"a": rule},
            "private_data": {"b": {"c": rule | {"expired": 5}}},
            "secret_data": {
                "application": {"canRead": {"value": True}},
                "meta": {"roles": {"canRead": {"value": "self"}}},
            },
            "login": {"can": {"value": True}},
        }
        role = {
            "name": "cook", "meta": {"private_data": {"a": rule}, "public_data": {"b": rule}}, "description": "x",
            "protected": False, "default": False, "condition": condition | {"ip": "10.0.0.0/8"}, "user_limit": 0,
            "params": "x",
        }  # fmt: skip
        schema_rule = rule | {"protected": False, "description": "x"}
        source: dict[str, Any] = {"application_id": app}
        save: dict[str, Any] = {"action": "save"}
        get: dict[str, Any] = {"action": "get"}
        self.good: list[tuple[str, dict[str, Any]]] = [
            ("application", get | {"data": source, "options": {"full": True}}),
            (
                "application",
                save | {"data": source | {"name": "x", "description": "x", "settings": settings, "service_meta": meta}},
            ),
            ("application", {"action": "delete", "data": source}),
            ("application/tags", source | {"data": {"tags": ["project"]}}),
            (
                "meta/data",
                get | source | {
                    "data": {"user_id": studio.root.user_id, "type": "list"},
                    "options": {
                        "project_id": project, "hide_project_access": True, "with_exp": True, "with_roles": True,
                        "with_apps_data": True,
                    },
                },
            ),
            ("meta/data", save | source | {"data": {"user_id": studio.root.user_id, **own}, "expired": 5}),
            ("publish", {"project": "x", "user": "x"}),
            ("project", get | {"data": {"id": project}}),
            (
                "project",
                save | {
                    "data": {
                        "id": project, "title": f"x {project}", "description": "x", "aliases": [f"x_{project}"],
                        "settings": {
                            "allowed_domains": ["a.b", "example.com"],
                            "services": {str(app): {"groups": [action]}},
                        },
                    }
                },
            ),
            ("project", {"action": "delete", "data": {"id": project}}),
            ("project/membership", get | {"data": {"id": project}}),
            (
                "project/membership",
                save | {
                    "data": {
                        "id": project, "users": [{"user_id": keeper, "roles": roles | resources}], "allow": [group],
                        "disallow": [others],
                    }
                },
            ),
            ("group", get | {"data": {"project_id": project}}),
            ("group", save | {"data": {"project_id": project, "title": "x", "description": "x"}, "group_id": group}),
            ("group", {"action": "delete", "group_id": group}),
            ("group/access", {"group_id": group, "data": {"users": [keeper], "conditions": [titled]}}),
            ("group/tags", {"group_id": group, "data": {"tags": ["project"]}}),
            ("accessKey", get | source),
            ("accessKey", save | source | {"data": {"comment": "x"}}),
            ("accessKey", {"action": "delete", "data": {"id": "x"}} | source),
            ("roles", get | source | {"data": {"name": "guard"}}),
            ("roles", save | source | {"data": role}),
            ("roles", {"action": "delete", "data": {"name": "guard"}} | source),
            ("meta/schema", get | source),
            (
                "meta/schema",
                save | source | {
                    "data": {
                        "login": {"can": schema_rule}, "public_data": {"a": schema_rule},
                        "private_data": {"b": {"c": schema_rule}}, "roles": {"cook": role},
                        "secret_data": own["secret_data"],
                    }
                },
            ),
            (
                "audit",
                {"data": source | {
                    "project_id": project, "user_id": "5", "operation": "x", "target": "x", "since": 5, "until": 5,
                    "before_id": 5, "most": 5,
                }},
            ),
        ]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a body, at every depth."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, below in items:
        yield (*path, name)
        if name != "config_schema":  # free
            yield from places(below, (*path, name))


def kind_of(value: Any) -> str:
    return {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", list: "list", dict: "obj"}[
        type(value)
    ]


def with_value(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> tuple[dict[str, Any], Any]:
    changed = copy.deepcopy(body)
    node: Any = changed
    for name in path[:-1]:
        node = node[name]
    before, node[path[-1]] = node[path[-1]], value
    return changed, before


def may_be(path: tuple[Any, ...], kind: str) -> bool:
    """Whether a field accepts several types: values of rules, ids of applications, a project_id of null."""
    name = path[-1]
    if name == "value":
        return "secret_data" not in path and "login" not in path and kind not in ("list", "obj")
    return (name, kind) in {("condition", "null")} and "conditions" not in path


@pytest.fixture(scope="module")
def bodies(studio: Studio) -> Bodies:
    return Bodies(studio)


def test_valid_bodies_are_accepted(studio: Studio) -> None:
    """The next test relies on this. Records of its own: an application has few access keys."""
    for path, body in Bodies(studio).good:
        if body.get("action") == "delete" or path == "publish":
            continue
        response = studio.root.call(path, **body)
        assert response.status == 200, (path, body, response.body)


@pytest.mark.parametrize("number", range(26))
def test_field_of_another_type_is_rejected(studio: Studio, bodies: Bodies, number: int) -> None:
    assert len(bodies.good) == 26
    path, good = bodies.good[number]
    for index, place in enumerate(places(good), number):
        before = with_value(good, place, None)[1]
        others = [kind for kind in KINDS if kind != kind_of(before) and not may_be(place, kind)]
        for kind in usual_part(others, 1, index):
            body, _ = with_value(good, place, KINDS[kind])
            response = studio.root.call(path, **body)
            assert (response.status, response.body["status"]) == (400, "ERROR"), (path, place, kind, response.body)
            assert set(response.body) == {"status", "error"}
            assert "\u00e9" not in response.body["error"]  # the error does not repeat the input


HOSTILE = ("'; DROP TABLE users; --", "%_\\:name$1", "x" * 5000)


@pytest.mark.parametrize("number", range(26))
def test_hostile_strings_are_stored_as_data_or_rejected(studio: Studio, bodies: Bodies, number: int) -> None:
    path, good = bodies.good[number]
    if good.get("action") == "delete":
        return
    for index, place in enumerate(places(good), number):
        for text in usual_part(HOSTILE, 1, index):
            body, before = with_value(good, place, text)
            if isinstance(before, str) and place != ("data", "application_id"):
                assert studio.root.call(path, **body).status < 500, (path, place, text)


WITH_ACTION = [
    path
    for path in PATHS
    if path not in ("application/tags", "user/info", "publish", "group/access", "group/tags", "audit")
]
ACTIONS = (None, "", "GET", "drop", 5, True, ["get"], {"get": 1})


@pytest.mark.parametrize("path", WITH_ACTION)
def test_missing_or_unknown_action_is_rejected(studio: Studio, path: str) -> None:
    for action in usual_part(ACTIONS, 3, WITH_ACTION.index(path)):
        response = studio.root.call(path, action=action, application_id=1, data={})
        assert (response.status, response.body["error"].split(":")[0]) == (400, "action")
    assert studio.root.call(path, application_id=1, data={}).status == 400


def send(studio: Studio, path: str, raw: bytes, **headers: str) -> tuple[int, Any]:
    default_headers = {
        "Authorization": f"Bearer {studio.root.jwt}",
        "Factor": FACTOR,
        "Content-Type": "application/json",
    }
    response = studio.client.post(f"/api/permissions/{path}", content=raw, headers=default_headers | headers)
    return response.status_code, response.json()


DEEP = b'{"data":' * 65 + b"{}" + b"}" * 65
RAW = (
    b"{", b"[]", b'"x"', b"5", b"null", b"{}{}", b"\xff", b"\xef\xbb\xbf{}", '{"a":"x"}'.encode("utf-16"),
    b'{"a":1,"a":2}', b'{"data":{"a":1,"a":2}}', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e400}',
    b'{"a":9223372036854775808}', b'{"a":' + b"9" * 5000 + b"}", b'{"a":"\\u0000"}', b'{"\\u0000":1}',
    b'{"a":"\\ud800"}', b'{"a":"\\udc00x"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\x80"}', b'{"a":"\\uffff"}', DEEP,
    b'{"a":' + b"[" * 20000 + b"]" * 20000 + b"}", b"a=b", b"{'a':1}", b'{"a":01}', b'{"a":1,}',
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(PATHS)))
def test_unreadable_body_is_rejected_before_authentication(studio: Studio, number: int) -> None:
    path = PATHS[number]
    for raw in usual_part(RAW, 6, number):
        status, response = send(studio, path, raw, Authorization="Bearer unknown")
        assert (status, response["status"]) == (400, "ERROR"), raw[:40]


UNACCEPTED = (
    (b"a=b", "Content-Type", "application/x-www-form-urlencoded", 415),
    (b"{}", "Content-Type", "text/plain", 415),
    (b"{}", "Content-Encoding", "gzip", 415),
    (json.dumps({"a": "x" * (1024 * 1024)}).encode(), "Content-Type", "application/json", 413),
)


@pytest.mark.parametrize("number", range(len(PATHS)))
def test_other_media_types_and_large_bodies_are_rejected(studio: Studio, number: int) -> None:
    for raw, header, value, status in usual_part(UNACCEPTED, 1, number):
        with studio.server.client() as client:  # a response before the body was read makes a connection unusable
            response = client.post(f"/api/permissions/{PATHS[number]}", content=raw, headers={header: value})
        assert (response.status_code, response.json()["status"]) == (status, "ERROR")


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_rejected(studio: Studio, path: str) -> None:
    response = studio.client.get(f"/api/permissions/{path}")
    assert (response.status_code, response.json()["status"]) == (405, "ERROR")
    assert "POST" in response.headers["Allow"]


@pytest.mark.parametrize("path", PATHS)
def test_caller_is_authenticated_before_the_input_is_validated(studio: Studio, ann: ApiUser, path: str) -> None:
    body = {"action": 5, "application_id": [], "data": 7, "group_id": 5, "project": 5}
    assert ApiUser(studio.client, "", "", "a.b.c").call(path, **body).status == 401
    if path != "user/info":
        assert ann.call(path, **body).status == 400


def test_empty_body_counts_as_an_empty_object(studio: Studio) -> None:
    assert send(studio, "user/info", b"")[0] == 200
    assert send(studio, "user/info", b"", **{"Content-Type": ""})[0] == 200


def test_responses_are_not_cacheable(studio: Studio) -> None:
    response = studio.client.post("/api/permissions/user/info", json={}, headers={"Origin": "https://evil.example"})
    assert response.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in response.headers
