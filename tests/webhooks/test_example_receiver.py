"""The receiver of the documentation, as a program of its own."""

import os
import subprocess
import sys
from pathlib import Path

import httpx

from tests.admin.conftest import Administrator
from tests.kit.ports import free_port
from tests.kit.server import until
from tests.perm.endpoints.conftest import Studio
from tests.webhooks.conftest import SECRET, AddWebhook, set_disabled

PROGRAM = Path(__file__).parents[2] / "examples" / "webhook" / "receiver.py"


def test_example_accepts_signed_events_once_and_nothing_else(
    studio: Studio, root: Administrator, add_webhook: AddWebhook, tmp_path: Path
) -> None:
    user, port, output = studio.user(), free_port(), tmp_path / "output"
    environment = {**os.environ, "WEBHOOK_SECRET": SECRET}
    url = f"http://127.0.0.1:{port}/"
    with (
        output.open("w") as file,
        subprocess.Popen([sys.executable, str(PROGRAM), str(port)], env=environment, stdout=file) as program,
    ):
        try:
            assert until(lambda: is_answering(url))
            add_webhook(url, events=["*"])
            set_disabled(root, user.user_id, True)
            application_id = studio.application()
            studio.save_data(user, application_id, private_data={"srv": {"restart": {"value": True}}})
            assert until(lambda: f"user_disabled {user.user_id}" in output.read_text())
            assert until(lambda: f"user {user.user_id} at application {application_id}:" in output.read_text())
            forged = {"Webhook-Signature": "t=1,v1=00"}
            assert httpx.post(url, content=b"{}", headers=forged, timeout=60).status_code == 403
            assert httpx.post(url, content=b"{}", timeout=60).status_code == 403
        finally:
            program.kill()


def is_answering(url: str) -> bool:
    try:
        return httpx.post(url).status_code == 403
    except httpx.HTTPError:
        return False
