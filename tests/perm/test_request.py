"""Requests to permission endpoints: dispatch by action, required fields, warnings."""

from ipaddress import ip_address
from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.caller import Caller
from sso.perm.request import Handler, PermissionRequest, by_action


def request(**fields: Any) -> PermissionRequest:
    return PermissionRequest(fields, Caller("5", ip_address("127.0.0.1")))


def responding(text: str) -> Handler:
    async def handler(request: PermissionRequest) -> dict[str, Any]:
        return request.response(data=text)

    return handler


async def test_by_action_passes_the_request_to_the_handler_of_its_action() -> None:
    handler = by_action(get=responding("got"), save=responding("saved"))
    assert await handler(request(action="get")) == {"status": "OK", "data": "got"}
    assert await handler(request(action="save")) == {"status": "OK", "data": "saved"}


@pytest.mark.parametrize("action", [None, "", "delete", "Get", 1, True, ["get"], {"get": 1}])
async def test_by_action_rejects_an_unknown_action_and_names_the_known_ones(action: object) -> None:
    handler = by_action(get=responding("got"), save=responding("saved"))
    with pytest.raises(FieldError, match="action: must be get or save"):
        await handler(request(action=action))


def test_required_data_rejects_a_request_without_data() -> None:
    assert request(data={"a": 1}).required_data() == {"a": 1}
    with pytest.raises(FieldError, match="data: is required"):
        request().required_data()


def test_response_contains_warnings_only_if_there_are_some() -> None:
    sent = request(data={"title": "x", "colour": "red"})
    assert sent.response() == {"status": "OK"}
    sent.warn_unknown(sent.data, frozenset(("title",)))
    assert sent.response(data=1) == {"status": "OK", "data": 1, "warnings": ["colour: unknown field, ignored"]}
