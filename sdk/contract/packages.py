"""The packages that keep the contract, and how their test programs are started."""

import sys
from dataclasses import dataclass
from pathlib import Path

SDK = Path(__file__).parents[1]
PYTHON_DRIVER = SDK / "python/server_driver.py"


@dataclass(frozen=True)
class Package:
    name: str
    program: tuple[str, ...]
    built: Path  # exists if the package was built
    without: tuple[str, ...] = ()  # scenarios of what its platform cannot do; the documentation says so

    @property
    def is_built(self) -> bool:
        return self.built.exists()


SIGNED = ("banned", "guest", "guests_are_off", "link", "signed_requests")


def _godot(version: int) -> Package:
    """Godot can sign from 3.3 on. The build has left a file if it found an engine that cannot."""
    project = SDK / f"godot/build/godot{version}"
    without = SIGNED if (project / "cannot_sign").exists() else ()
    return Package(f"godot{version}", (str(SDK / "godot/test/driver"), str(project)), project / "engine", without)


# The packages for games.
PACKAGES = (
    Package("cpp", (str(SDK / "cpp/build/sso_game_driver"),), SDK / "cpp/build/sso_game_driver"),
    Package("unreal", (str(SDK / "unreal/build/test/sso_unreal_driver"),), SDK / "unreal/build/test/sso_unreal_driver"),
    Package("unity", ("mono", str(SDK / "unity/build/Driver.exe")), SDK / "unity/build/Driver.exe"),
    Package(
        "typescript",
        # Node has the WebSocket of browsers from version 22 on, and before behind an option.
        ("node", "--experimental-websocket", "--no-warnings", str(SDK / "typescript/test/driver.mjs")),
        SDK / "typescript/dist/index.js",
    ),
    _godot(4),
    _godot(3),
)

# The packages for game servers.
SERVER_PACKAGES = (
    Package("cpp", (str(SDK / "cpp/build/sso_server_driver"),), SDK / "cpp/build/sso_server_driver"),
    Package(
        "csharp",
        ("mono", str(SDK / "csharp/build/ServerDriver.exe")),
        SDK / "csharp/build/ServerDriver.exe",
        without=("verify_es256", "verify_eddsa"),  # Mono has neither
    ),
    Package("python", (sys.executable, str(PYTHON_DRIVER)), PYTHON_DRIVER),
    Package("python-async", (sys.executable, str(PYTHON_DRIVER), "--async"), PYTHON_DRIVER),
    Package(
        "typescript",
        ("node", "--no-warnings", str(SDK / "typescript/test/server_driver.mjs")),
        SDK / "typescript/dist/server/index.js",
    ),
    Package("go", (str(SDK / "go/build/driver"),), SDK / "go/build/driver"),
)
