"""Runs the examples of docs/permissions.rst and docs/change_permissions.rst."""

import json
import re
from pathlib import Path
from typing import Any

from tests.kit.documented_examples import agrees
from tests.perm.endpoints.conftest import FACTOR, Studio

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLE = re.compile(r"^    (Ann|Bob) POST (/\S+)\n((?:    .*\n)+?)    (\d{3})\n((?:    .*\n)+)", re.M)


def filled(text: str, names: dict[str, Any]) -> Any:
    for name, value in names.items():
        text = text.replace(f'"application_id": "{{{name}}}"', f'"application_id": {json.dumps(value)}')
        text = text.replace(f"{{{name}}}", str(value))
    return json.loads(text)


def test_examples_of_the_documentation_are_correct(studio: Studio) -> None:
    users = {"Ann": studio.root, "Bob": studio.user()}
    names: dict[str, Any] = {"ann": users["Ann"].user_id, "bob": users["Bob"].user_id}
    before, mark, after = (DOCS / "permissions.rst").read_text().partition(".. _checking many rules:")
    assert mark  # the other page continues where the user has a role, and no group takes it away yet
    examples = EXAMPLE.findall(before + (DOCS / "change_permissions.rst").read_text() + after)
    assert len(examples) >= 14
    for name, path, request, status, response in examples:
        headers = {"Authorization": f"Bearer {users[name].jwt}", "Factor": FACTOR}
        actual = studio.client.post(path, json=filled(request, names), headers=headers)
        expected = filled(response, names)
        assert actual.status_code == int(status), (path, request, actual.text)
        assert agrees(expected, actual.json(), names), (path, expected, actual.text)
