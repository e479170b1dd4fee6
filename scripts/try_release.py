"""Tries an installed release: ``try_release.py PATH_OF_SSO``. Starts a server with demo data, logs in, stops it."""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

DOCUMENT = {"users": [{"login": "ann@example.com", "password": "a password to try"}]}


def try_release(program: str) -> None:
    with tempfile.TemporaryDirectory(prefix="sso-release-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        (folder / "document.json").write_text(json.dumps(DOCUMENT))
        environment = {"PATH": os.environ["PATH"], "SSO_DATA_DIR": str(folder / "data"), "SSO_BIND": "127.0.0.1:0"}
        environment["SSO_LOG_LEVEL"] = "error"
        command = [program, "serve", "--apply", str(folder / "document.json")]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=folder)
        assert server.stdout
        try:
            ready = next(filter(None, (re.search(r"ready at (\S+)", line) for line in server.stdout)), None)
            assert ready, "the server did not start"
            log_in(ready[1])
        finally:
            server.terminate()
            code = server.wait(30)
        assert code == 0, f"the server ended with exit code {code}"


def log_in(base_url: str) -> None:
    body = json.dumps({key: DOCUMENT["users"][0][key] for key in ("login", "password")}).encode()
    request = urllib.request.Request(
        f"{base_url}/proxy/api/login", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["status"] == "OK"


if __name__ == "__main__":
    try_release(sys.argv[1])
