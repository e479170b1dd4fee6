"""An application key in a file of one node: the other node accepts service JWTs that it signed, and stops with it."""

from pathlib import Path

import pytest

from sso.core.keys import GENERATE
from tests.kit.nodes import Node, running_nodes
from tests.kit.postgres import Postgres
from tests.kit.server import until
from tests.perm.endpoints.conftest import Studio
from tests.perm.endpoints.tokens import ServiceKey


@pytest.fixture
def key() -> ServiceKey:
    return ServiceKey(private=GENERATE["ES256"]())


def test_key_file_of_one_node_counts_on_both(postgres_server: Postgres, tmp_path: Path, key: ServiceKey) -> None:
    dsn = postgres_server.fresh()
    with running_nodes(tmp_path, dsn) as (first, second):
        studio = Studio(first, first.http)
        application_id = studio.application()
        body = {
            "action": "get",
            "application_id": application_id,
            "data": {"type": "roles", "user_id": studio.root.user_id},
        }

        def status(node: Node) -> int:
            token = key.sign(first, application_id)
            answer = node.http.post("/api/permissions/meta/data", json=body, headers={"Service-Jwt": token})
            return answer.status_code

        assert (status(first), status(second)) == (401, 401)
        file = first.folder / "data" / "keys" / f"{application_id}.pem"
        file.parent.mkdir()
        file.write_text(key.pem)
        assert until(lambda: (status(first), status(second)) == (200, 200))

        second.stop()
        second.start()  # a node that starts later knows it, too
        assert status(second) == 200

        file.unlink()
        assert until(lambda: (status(first), status(second)) == (401, 401))
    postgres_server.drop(dsn)
