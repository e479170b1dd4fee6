"""The scripts use the environment of their own checkout only."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Everything but the call of uv, which would change the environment.
SYNCHRONIZE = '. scripts/environment; find_uv() { say "uv is called"; return 3; }; sync_environment'


def synchronize(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", SYNCHRONIZE], cwd=checkout, capture_output=True, text=True, check=False)


def test_environment_of_another_checkout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sso").mkdir()
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/environment", tmp_path / "scripts")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    done = synchronize(tmp_path)
    expected = f"bash: .venv runs the code in {ROOT}, not in {tmp_path}: remove .venv\n"
    assert (done.returncode, done.stderr) == (1, expected)


def test_environment_of_this_checkout_is_synchronized() -> None:
    done = synchronize(ROOT)
    assert (done.returncode, done.stderr) == (3, "uv is called\n")
