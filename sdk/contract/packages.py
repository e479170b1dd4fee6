"""The packages that keep the contract, and how their test programs are started."""

from dataclasses import dataclass
from pathlib import Path

SDK = Path(__file__).parents[1]


@dataclass(frozen=True)
class Package:
    name: str
    program: tuple[str, ...]
    built: Path  # exists if the package was built
    without: tuple[str, ...] = ()  # scenarios of what its platform cannot do; the documentation says so

    @property
    def is_built(self) -> bool:
        return self.built.exists()


# The packages for games.
PACKAGES = (
    Package("cpp", (str(SDK / "cpp/build/sso_game_driver"),), SDK / "cpp/build/sso_game_driver"),
    Package("unity", ("mono", str(SDK / "unity/build/Driver.exe")), SDK / "unity/build/Driver.exe"),
    Package(
        "typescript",
        # Node has the WebSocket of browsers from version 22 on, and before behind an option.
        ("node", "--experimental-websocket", "--no-warnings", str(SDK / "typescript/test/driver.mjs")),
        SDK / "typescript/dist/index.js",
    ),
)

# The packages for game servers.
SERVER_PACKAGES = (
    Package(
        "typescript",
        ("node", "--no-warnings", str(SDK / "typescript/test/server_driver.mjs")),
        SDK / "typescript/dist/server/index.js",
    ),
    Package("go", (str(SDK / "go/build/driver"),), SDK / "go/build/driver"),
)
