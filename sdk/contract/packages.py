"""The packages that keep the contract, and how their test programs are started."""

from dataclasses import dataclass
from pathlib import Path

SDK = Path(__file__).parents[1]


@dataclass(frozen=True)
class Package:
    name: str
    program: tuple[str, ...]
    built: Path  # exists if the package was built
    cannot_sign: Path | None = None  # exists if the engine that was found has no signatures

    @property
    def is_built(self) -> bool:
        return self.built.exists()

    @property
    def can_sign(self) -> bool:
        return self.cannot_sign is None or not self.cannot_sign.exists()


def _godot(version: int) -> Package:
    project = SDK / f"godot/build/godot{version}"
    program = (str(SDK / "godot/test/driver"), str(project))
    return Package(f"godot{version}", program, project / "engine", project / "cannot_sign")


PACKAGES = (
    Package("cpp", (str(SDK / "cpp/build/sso_game_driver"),), SDK / "cpp/build/sso_game_driver"),
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
