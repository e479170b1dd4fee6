"""Builds the Debian package: ``python -m scripts.packages.debian WHEEL SITE_PACKAGES OUTPUT_FOLDER``.

SITE_PACKAGES has the dependencies for the Python that runs this program. The package depends on that version of
Python: some of them contain machine code for it. With the same SOURCE_DATE_EPOCH, the same input gives the same bytes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MAINTAINER_SCRIPTS = ("postinst", "prerm", "postrm")
PROGRAM = """#!/opt/sso/bin/python3
import sys

from sso.cli import main

sys.exit(main())
"""


def build(wheel: Path, site_packages: Path, output: Path) -> Path:
    version = wheel.name.split("-")[1]
    architecture = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    package = output / f"sso_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix="sso-debian-") as name:
        tree = Path(name) / "tree"
        tree.mkdir()
        add_program(tree, wheel, site_packages)
        add_files(tree)
        add_control(tree, version, architecture)
        built = int(os.environ["SOURCE_DATE_EPOCH"])
        for path in (tree, *tree.rglob("*")):
            # dpkg-deb changes newer times to this one and keeps older ones, which checkouts do not share.
            os.utime(path, (built, built), follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(package)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return package


def add_program(tree: Path, wheel: Path, site_packages: Path) -> None:
    """Adds a virtual environment of /usr/bin/python3, whose modules postinst compiles."""
    environment = tree / "opt/sso"
    modules = environment / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    shutil.copytree(site_packages, modules, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(modules / "bin", ignore_errors=True)  # programs of the dependencies, with paths of this machine
    (modules / ".lock").unlink(missing_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(modules)
    programs = environment / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to("/usr/bin/python3")
    (programs / "sso").write_text(PROGRAM)
    (programs / "sso").chmod(0o755)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")


def add_files(tree: Path) -> None:
    for source, target in (
        (DEPLOY / "bin/sso", "usr/bin/sso"),
        (DEPLOY / "systemd/sso.service", "lib/systemd/system/sso.service"),
        (DEPLOY / "sso.example.toml", "etc/sso/sso.toml"),
        (ROOT / "LICENSE", "usr/share/doc/sso/copyright"),
        (ROOT / "CHANGELOG.rst", "usr/share/doc/sso/CHANGELOG.rst"),
    ):
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tree / target)
    documentation = tree / "usr/share/doc/sso"
    shutil.copytree(
        ROOT / "docs", documentation, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_*", ".*", "conf.py")
    )
    samples = documentation / "examples"
    for name in ("nginx", "haproxy", "caddy", "prometheus", "grafana", "logrotate"):
        shutil.copytree(DEPLOY / name, samples / name)


def add_control(tree: Path, version: str, architecture: str) -> None:
    control = tree / "DEBIAN"
    control.mkdir()
    major, minor = sys.version_info[:2]
    values = {
        "VERSION": version,
        "ARCHITECTURE": architecture,
        "PYTHON": f"{major}.{minor}",
        "NEXT_PYTHON": f"{major}.{minor + 1}",
    }
    text = (DEPLOY / "debian/control").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    (control / "control").write_text(text)
    (control / "conffiles").write_text("/etc/sso/sso.toml\n")
    for name in MAINTAINER_SCRIPTS:
        shutil.copy(DEPLOY / "debian" / name, control / name)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
