"""The documentation's diagrams and file names, compared with the source."""

import re
from pathlib import Path

from scripts.package_diagram import arrows, box_of, graph, without_shortcuts

ROOT = Path(__file__).parents[2]
DIAGRAMS = ROOT / "docs" / "diagrams"


def test_package_diagram_shows_the_imports_of_the_source() -> None:
    assert (DIAGRAMS / "packages.dot").read_text() == graph(), "the imports have changed: run scripts/diagrams"


def test_package_diagram_shows_every_package() -> None:
    programs = [path for path in (ROOT / "sso").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))]
    names = {path.stem for path in programs} - {"__init__"}
    assert names == {name for name in names if box_of(name)}, "scripts/package_diagram.py has no box for these"


def test_every_diagram_has_been_rendered() -> None:
    sources = {path.stem for path in (*DIAGRAMS.glob("*.puml"), *DIAGRAMS.glob("*.dot"))}
    assert {path.stem for path in DIAGRAMS.glob("*.svg")} == sources, "run scripts/diagrams"


def test_packages_have_no_import_cycle() -> None:
    targets: dict[str, set[str]] = {}
    for source, target in arrows():
        targets.setdefault(source, set()).add(target)
    while targets:
        leaves = {target for found in targets.values() for target in found} - targets.keys()
        open_ends = {source: found - leaves for source, found in targets.items()}
        left = {source: found for source, found in open_ends.items() if found}
        assert left != targets, f"import cycle between packages: {left}"
        targets = left


def test_shortcuts_are_left_out_of_the_package_diagram() -> None:
    assert without_shortcuts({("cli", "app"), ("app", "core"), ("cli", "core")}) == {("cli", "app"), ("app", "core")}


def test_participants_of_sequence_diagrams_are_modules() -> None:
    for diagram in DIAGRAMS.glob("*.puml"):
        for name in re.findall(r'participant "([a-z_0-9/]+)', diagram.read_text()):
            path = ROOT / "sso" / name
            assert path.is_dir() or path.with_suffix(".py").is_file(), f"{diagram.name}: there is no sso/{name}"


def test_paths_in_the_documentation_exist() -> None:
    pages = [*ROOT.glob("*.rst"), *(ROOT / "docs").glob("*.rst")]
    for page in pages:
        for path in re.findall(r"``((?:sso|tests|scripts|docs|examples)/[\w./-]+)``", page.read_text()):
            assert (ROOT / path).exists(), f"{page.name}: there is no {path}"
