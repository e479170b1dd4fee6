"""The programs of the cluster, with the configuration files of ``deploy/cluster``."""

import importlib.metadata
import json
import platform
import secrets
import shutil
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from string import Template

from scripts.local_cluster import processes
from scripts.local_cluster.layout import CERTIFICATES, CONFIG, FOLDER, MACHINES, NETWORK, NODES, PROXY, Machine

OLDEST_PATRONI = (4, 0, 6)  # older ones can lose acknowledged writes when a machine returns
WORKERS = 1
# All clients of the load have one address.
NO_RATE_LIMITS = {f"SSO_RATE_{name}": "1000000" for name in ("LOGIN", "ACCOUNT", "GETGSID", "AUTHORIZE")}
SECRETS = FOLDER / "secrets.json"
BIN = Path(sys.executable).parent


def check_programs() -> None:
    """Raises SystemExit if a program is missing or too old."""
    needed = ("etcd", "nats-server", "haproxy", "ip", "unshare", "openssl", "curl")
    missing = [name for name in needed if not _path(name)] + ([] if postgres_bin() else ["postgres"])
    if missing:
        packages = "etcd-server, nats-server, haproxy, iproute2, openssl, curl, postgresql"
        raise SystemExit(f"not installed: {', '.join(missing)} (packages {packages})")
    version = importlib.metadata.version("patroni")
    if tuple(map(int, version.split(".")[:3])) < OLDEST_PATRONI:
        raise SystemExit(f"Patroni {version} can lose acknowledged writes; 4.0.6 or newer is required")


def postgres_bin() -> Path | None:
    """The programs of the newest PostgreSQL of Debian. The embedded one has no TLS."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def create_secrets() -> None:
    names = (
        *("SUPERUSER_PASSWORD", "REPLICATION_PASSWORD", "REWIND_PASSWORD", "DATABASE_PASSWORD"),
        *("PATRONI_PASSWORD", "NATS_TOKEN", "NATS_ROUTE_PASSWORD"),
    )
    values = {name: secrets.token_urlsafe(18) for name in names}
    values["SSO_SECRET_KEY"] = b64encode(secrets.token_bytes(32)).decode()
    SECRETS.touch(0o600)
    SECRETS.write_text(json.dumps(values))


def create_certificates() -> None:
    machines = [f"{machine.name}={machine.address}" for machine in MACHINES]
    subprocess.run([str(CONFIG / "certificates"), str(CERTIFICATES), *machines], check=True, capture_output=True)


def read_secret(name: str) -> str:
    value: str = json.loads(SECRETS.read_text())[name]
    return value


def start_etcd(machine: Machine) -> None:
    environment = {"ETCD_UNSUPPORTED_ARCH": "arm64"} if platform.machine() == "aarch64" else {}
    program = (_path("etcd"), "--config-file", str(configuration(machine, "etcd.yml")))
    processes.start(machine, "etcd", program, environment)


def start_patroni(machine: Machine) -> None:
    program = (str(BIN / "patroni"), str(configuration(machine, "patroni.yml")))
    processes.start(machine, "patroni", program, {"PATRONI_LOG_LEVEL": "INFO"})


def start_nats(machine: Machine) -> None:
    processes.start(machine, "nats", (_path("nats-server"), "--config", str(configuration(machine, "nats.conf"))), {})


def start_haproxy() -> None:
    # Fewer connections than the file says: they must fit in the limit of open files here.
    options = ("-db", "-n", "4000", "-f", str(configuration(PROXY, "haproxy.cfg")))
    processes.start(PROXY, "haproxy", (_path("haproxy"), *options), {})


def start_sso(machine: Machine) -> None:
    processes.start(machine, "sso", (str(BIN / "sso"), "serve"), sso_environment(machine))


def sso_environment(machine: Machine) -> dict[str, str]:
    lines = configuration(machine, "sso.env").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return settings | NO_RATE_LIMITS


def configuration(machine: Machine, name: str) -> Path:
    """Writes the configuration file of a machine and returns its path."""
    values = {
        "NAME": machine.name,
        "ADDRESS": machine.address,
        "PROXY_ADDRESS": PROXY.address,
        "NETWORK": NETWORK,
        "DATA": str(machine.folder),
        "POSTGRES_BIN": str(postgres_bin()),
        "CERTIFICATES": str(CERTIFICATES),
        "WORKERS": str(WORKERS),
        **json.loads(SECRETS.read_text()),
    }
    for node in NODES:
        values |= {f"NAME_{node.number}": node.name, f"ADDRESS_{node.number}": node.address}
    file = machine.folder / name
    file.touch(0o600)
    file.write_text(Template((CONFIG / name).read_text()).substitute(values))
    return file


def _path(name: str) -> str:
    return shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin") or ""


STARTERS = {"etcd": start_etcd, "nats": start_nats, "patroni": start_patroni, "sso": start_sso}
