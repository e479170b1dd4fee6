"""The Godot addon: its QR code, what it stores, outages, and the files of its two versions."""

import json
import os
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest
import segno

from sdk.contract.packages import PACKAGES, SDK, Package
from tests.sdk.answering import answering

GODOT = [package for package in PACKAGES if package.name.startswith("godot")]
SHARED, GODOT_3 = SDK / "godot/addons/sso", SDK / "godot/godot3/addons/sso"


def run(package: Package, script: str, **environment: str) -> str:
    """Returns what a script of the folder test prints."""
    command = [str(package.built), "--path", str(package.built.parent), "-s", f"test/{script}.gd"]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=200).stderr


def qr_code(package: Package, text: str) -> list[list[int]]:
    """Returns the rows that the addon draws for a text."""
    printed = run(package, "qr", SSO_TEXT=text)
    return [[int(module) for module in row] for row in re.findall(r"^ROW ([01]+)$", printed, re.MULTILINE)]


def link(length: int) -> str:
    return "https://sso.example.com/?gsid=" + "".join(chr(97 + place * 7 % 26) for place in range(length - 30))


@pytest.mark.parametrize("package", GODOT, ids=lambda package: package.name)
def test_qr_code_is_that_of_another_library(package: Package) -> None:
    """The links fill a code of each size, because libraries may differ in how they fill the rest."""
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    for length in (42, 84, 122, 213):  # versions 3, 5, 7 and 10: one block, several, of two sizes
        options = {"error": "m", "mode": "byte", "micro": False, "boost_error": False}
        codes = [segno.make(link(length), mask=mask, **options).matrix for mask in range(8)]  # type: ignore[arg-type]
        assert qr_code(package, link(length)) in [[[int(module) for module in row] for row in code] for code in codes]
    assert qr_code(package, link(214)) == []


@pytest.mark.parametrize("package", GODOT, ids=lambda package: package.name)
def test_camera_reads_the_qr_code(package: Package, tmp_path: Path) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    if which("zbarimg") is None:
        pytest.skip("zbarimg is not installed: apt-get install zbar-tools")
    rows = qr_code(package, link(67))
    border, scale = 4, 6
    light = [0] * (len(rows) + 2 * border)
    framed = [light] * border + [[0] * border + row + [0] * border for row in rows] + [light] * border
    lines = [" ".join(str(module) for module in row for _ in range(scale)) for row in framed for _ in range(scale)]
    image = tmp_path / "code.pbm"
    image.write_text(f"P1\n{len(framed) * scale} {len(lines)}\n" + "\n".join(lines))
    done = subprocess.run(["zbarimg", "-q", "--raw", str(image)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == link(67)


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


GOOD_SALT = b'[sso]\n\nsalt="another"\n'


@pytest.mark.parametrize("package", GODOT, ids=lambda package: package.name)
@pytest.mark.parametrize(
    "files",
    [
        {"guest_key.bin": b"of another device", "token.bin": b"of another device"},
        {"guest_key.bin": b"of another device", "token.bin": b"of another device", "salt.cfg": GOOD_SALT},
        {"guest_key.bin": b"of another device", "token.bin": b"of another device", "salt.cfg": b"[broken"},
        {"salt.cfg": b"[broken"},
        {"salt.cfg": b""},
    ],
    ids=["no salt", "other salt", "broken salt", "only a broken salt", "only an empty salt"],
)
def test_what_cannot_be_read_is_not_overwritten(package: Package, files: dict[str, bytes], tmp_path: Path) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    folder = tmp_path / "sso"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    commands = '{"do": "resume", "factor": "d"}\n{"do": "guest"}\n'
    with answering(lambda path: (200, json.dumps({"status": "OK", "user_id": "1"}))) as base_url:
        command = [*package.program, base_url, str(tmp_path)]
        done = subprocess.run(command, input=commands, capture_output=True, text=True, check=True, timeout=200)
    assert [json.loads(line)["reason"] for line in done.stdout.splitlines()] == ["sign_in_needed", "invalid"]
    assert files_in(folder) == files


@pytest.mark.parametrize("package", GODOT, ids=lambda package: package.name)
def test_proxy_without_a_service_ends_the_sign_in_and_a_refused_call_changes_nothing(package: Package) -> None:
    if not package.is_built:
        pytest.skip(f"the package {package.name} is not built: run scripts/sdk")
    session = json.dumps({"status": "OK", "gsid": "1", "match": "brave otter"})
    with answering(lambda path: (502, "<html>") if "getGsidResult" in path else (200, session)) as base_url:
        printed = run(package, "node", SSO_BASE_URL=base_url).lower()
    assert "result unavailable\n" in printed
    assert "busy true 1\n" in printed


def names(pattern: str, file: Path) -> list[str]:
    return re.findall(pattern, file.read_text(), re.MULTILINE)


def test_files_of_the_two_versions_offer_the_same() -> None:
    for file, pattern in (
        ("platform.gd", r"^\t?(?:static )?func ([a-z]\w*\(.*\)|class .*:)"),
        ("sign_in.gd", r"export var (.*)$"),
    ):
        assert names(pattern, SHARED / file) == names(pattern, GODOT_3 / file) != []
    assert {file.name for file in GODOT_3.iterdir()} == {"platform.gd", "sign_in.gd"}
