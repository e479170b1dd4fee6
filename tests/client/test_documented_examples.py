"""The examples of docs/client.rst run as they are printed."""

import re
import textwrap
from pathlib import Path
from typing import Any

import trio

from sso.client import SsoClient, users
from tests.client.conftest import SECRET, Administration
from tests.kit.builders import PASSWORD

PAGE = (Path(__file__).parents[2] / "docs" / "client.rst").read_text()
BLOCK = re.compile(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)")


def test_examples_work(administration: Administration) -> None:
    with SsoClient(administration.url, administration.service) as sso:
        user_id = sso.send(users.create({"login": "example-of-the-page@example.com"}))["user_id"]
    names: dict[str, Any] = {
        "url": administration.url, "secret": SECRET, "password": PASSWORD, "user_id": user_id,
    }  # fmt: skip
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) >= 6
    for block in blocks:
        code = textwrap.dedent(block).replace('"management"', '"program"').replace("root@", "client-root@")
        exec(compile(code, "docs/client.rst", "exec"), names)
    assert trio.run(names["logins"], "ann@example.com") == ["ann@example.com"]
