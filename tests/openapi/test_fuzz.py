"""Sends generated requests to every operation of the OpenAPI document and compares the responses with it.

``scripts/fuzz openapi`` runs it: SSO_TEST_ROUNDS=100 sends many requests to each operation, also with the boundaries of
every field. In a usual run, tests/openapi/test_answers.py compares an answer of each operation with the document, and
tests/perm/endpoints/test_wrong_input.py and tests/admin send wrong input.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sso.openapi.document import build_document
from sso.services import Services
from tests.kit import postgres
from tests.kit.server import NO_LIMITS, QUICK, Server, running
from tests.perm.endpoints.conftest import FACTOR, Studio

CONFIGURATION = Path(__file__).parent / "schemathesis.toml"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0"))
pytestmark = [
    pytest.mark.skipif(not ROUNDS, reason="takes long: run scripts/fuzz openapi"),
    pytest.mark.timeout(600 + ROUNDS * 60),
]


@pytest.fixture(scope="module")
def fuzzed(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for these tests alone: an administrator's random requests change it."""
    settings = QUICK | NO_LIMITS | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("fuzzed"), **settings, SSO_GSID_HOLD_S="1") as server:
        yield server


def fuzz(server: Server, folder: Path, *options: str) -> None:
    document = folder / "openapi.json"

    async def write_document(services: Services) -> None:
        document.write_bytes(build_document("SSO", services.management.routes, with_pages=True))

    server.run_with_services(write_document)
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION), "run",
        str(document), "--url", server.base_url, "--checks", ",".join(CHECKS), "--no-color", "--no-shrink",
        "--suppress-health-check=all", "--warnings=off", "--request-timeout=60",
        f"--max-examples={ROUNDS}", "--phases=examples,coverage,fuzzing", "--continue-on-failure",
        "--generation-database=none", *options,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line[:400] for line in done.stdout.splitlines()) + done.stderr
    assert server.log_events("request.failed") == []


def test_requests_of_an_administrator(fuzzed: Server, tmp_path: Path) -> None:
    with fuzzed.client() as client:
        root = Studio(fuzzed, client).root
        fuzz(fuzzed, tmp_path, "--header", f"Authorization: Bearer {root.jwt}", "--header", f"Factor: {FACTOR}")


def test_requests_without_credentials(fuzzed: Server, tmp_path: Path) -> None:
    fuzz(fuzzed, tmp_path)
