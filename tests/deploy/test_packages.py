"""The files of a release besides the wheel. ``scripts/release`` installs and renders them with the real programs."""

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

import sso
from scripts.packages import debian, helm_chart
from tests.deploy.proxies import DEPLOY, installed
from tests.faults import open_folder


def test_every_value_of_the_chart_is_used_and_every_used_value_exists() -> None:
    chart = yaml.safe_load((DEPLOY / "helm/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (sso.__version__, sso.__version__)
    template = helm_chart.template()
    assert "REPLACE_" not in template
    assert "example.com" not in template
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())
    paths = {
        f"{name}.{part}" if name in ("image", "networks", "namespaces") else name
        for name, value in values.items()
        for part in (value if isinstance(value, dict) and value else [""])
    }
    assert set(re.findall(r"\.Values\.([\w.]+)", template)) == paths


@pytest.mark.skipif(not installed("dpkg-deb"), reason="dpkg is not installed: apt-get install dpkg")
def test_debian_package_has_the_same_bytes_twice_and_what_the_unit_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "site/orjson").mkdir(parents=True)
    (tmp_path / "site/orjson/__init__.py").touch()
    wheel = tmp_path / "sso-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sso/__init__.py", "")
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first = debian.build(wheel, tmp_path / "site", folders[0])
    os.utime(tmp_path / "site/orjson/__init__.py", (1, 1))  # as in an older checkout
    second = debian.build(wheel, tmp_path / "site", folders[1])
    assert first.read_bytes() == second.read_bytes()

    def told(*options: str) -> str:
        return subprocess.check_output(["dpkg-deb", *options, str(first)], text=True)

    assert "Version: 1.2.3\n" in told("--field")
    assert "@" not in told("--field").replace("root@localhost", "")
    lines = [line.split(maxsplit=5) for line in told("--contents").splitlines()]
    modes = {path.split(" -> ")[0].removeprefix("."): (mode, owner) for mode, owner, *_, path in lines}
    unit = (DEPLOY / "systemd/sso.service").read_text()
    documentation = re.search(r"^Documentation=file:(.+)$", unit, re.M)
    assert documentation
    for path, mode in {
        documentation[1]: "-rw-r--r--",
        "/lib/systemd/system/sso.service": "-rw-r--r--",
        "/etc/sso/sso.toml": "-rw-r--r--",
        "/usr/bin/sso": "-rwxr-xr-x",
        "/opt/sso/bin/sso": "-rwxr-xr-x",
    }.items():
        assert modes[path] == (mode, "root/root"), path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run the command")
def test_command_runs_under_the_account_with_the_settings_of_the_service() -> None:
    """Secrets may contain what a shell would expand. Settings of the caller do not count."""
    with open_folder() as folder:
        secrets = folder / "secrets.env"
        secrets.write_text('# a comment\n\nSSO_DATABASE_URL=postgresql://u:a$b`c@h/d?x=1&y=2\nSSO_SECRET_KEY="quoted"')
        secrets.chmod(0o600)
        program = folder / "program"
        program.write_text('#!/bin/sh\nid -un\nenv | grep ^SSO_ | sort\necho "$*"\n')
        program.chmod(0o755)
        script = (DEPLOY / "bin/sso").read_text()
        for name, value in (
            ("/opt/sso/bin/sso", str(program)),
            ("account=sso", "account=nobody"),
            ("/etc/sso/secrets.env", str(secrets)),
            ('--regid="$account"', "--regid=nogroup"),
        ):
            assert name in script
            script = script.replace(name, value)
        (folder / "sso").write_text(script)

        def run(*arguments: str, account: str = "root", **variables: str) -> "subprocess.CompletedProcess[str]":
            environment = {"PATH": os.environ["PATH"], "SSO_DATA_DIR": "/elsewhere", "SSO_USER": "root", **variables}
            command = ["sh", str(folder / "sso"), *arguments]
            return subprocess.run(
                command, env=environment, user=account, cwd="/", capture_output=True, text=True, check=False
            )

        assert run("user", "list", "a b").stdout.splitlines() == [
            "nobody",
            "SSO_DATABASE_URL=postgresql://u:a$b`c@h/d?x=1&y=2",
            "SSO_DATA_DIR=/var/lib/sso",
            "SSO_SECRET_KEY=quoted",
            "--config /etc/sso/sso.toml user list a b",
        ]
        secrets.write_text("SSO_DATA_DIR=/srv/sso\n")  # a file of the unit takes precedence over its own variables
        assert run("doctor").stdout.splitlines()[1] == "SSO_DATA_DIR=/srv/sso"
        secrets.unlink()  # the unit does not need it either
        assert run("doctor").stdout.splitlines() == [
            "nobody",
            "SSO_DATA_DIR=/var/lib/sso",
            "--config /etc/sso/sso.toml doctor",
        ]
        assert "sudo sso user list" in run("user", "list", account="nobody").stderr
        for alone in ("--version", "-h", "login", "logout", "replica"):
            assert run(alone, account="nobody").stdout.splitlines()[-1] == alone
        remote = run("user", "list", account="nobody", SSO_SERVER="https://sso.example.com")
        assert remote.stdout.splitlines()[-1] == "user list", "the machine of the command needs no service"
