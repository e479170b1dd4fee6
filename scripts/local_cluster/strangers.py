"""Tries what a program in the network of the machines could do without a certificate or a password of the cluster."""

import subprocess

from scripts.local_cluster import cluster, processes, services
from scripts.local_cluster.layout import CERTIFICATES, NODES, PROXY, Machine

TRUST = ("--cacert", str(CERTIFICATES / "ca.crt"))


def check() -> None:
    """Raises SystemExit if a stranger gets through."""
    node = cluster.primary() or NODES[0]
    attempts = {
        "etcd for clients": _status(f"https://{node.address}:2379/version", *TRUST),
        "etcd for peers": _status(f"https://{node.address}:2380/version", *TRUST),
        "Patroni without TLS": _status(f"http://{node.address}:8008/patroni"),
        "Patroni without a certificate": _post_status(node, *TRUST),
        "Patroni without a password": _post_status(node, *TRUST, *_certificate()),
        "PostgreSQL without TLS": _query(node, "sso", services.read_secret("DATABASE_PASSWORD"), "disable"),
        "PostgreSQL as superuser": _query(node, "postgres", services.read_secret("SUPERUSER_PASSWORD"), "require"),
        "PostgreSQL with the password of another role": _query(
            node, "sso", services.read_secret("REPLICATION_PASSWORD"), "require"
        ),
        "NATS for clients": _first_lines(node, 4222, 'CONNECT {"verbose":true}'),
        "NATS for routes": _first_lines(node, 6222, 'CONNECT {"verbose":true}'),
    }
    admitted = [name for name, was_admitted in attempts.items() if was_admitted]
    if admitted:
        raise SystemExit(f"a stranger is admitted: {', '.join(admitted)}")
    cluster.say(f"{len(attempts)} attempts of a stranger are refused")


def _certificate() -> tuple[str, ...]:
    path = CERTIFICATES / PROXY.name
    return "--cert", f"{path}.crt", "--key", f"{path}.key"


def _status(url: str, *options: str) -> bool:
    answer = cluster.in_network("curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", *options, url)
    return answer.startswith("2")


def _post_status(node: Machine, *options: str) -> bool:
    return _status(f"https://{node.address}:8008/reload", "-XPOST", *options)


def _query(node: Machine, user: str, password: str, sslmode: str) -> bool:
    """From another machine than that of the server."""
    dsn = f"host={node.address} user={user} dbname=sso sslmode={sslmode}"
    command = processes.command(PROXY, f"{services.postgres_bin()}/psql", "-X", "-c", "SELECT 1", dsn)
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "5"}
    return subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False).returncode == 0


def _first_lines(node: Machine, port: int, line: str) -> bool:
    """Whether a NATS server answers a connection without TLS with anything but an error."""
    script = f"exec 3<>/dev/tcp/{node.address}/{port}; printf '%s\\r\\nPING\\r\\n' '{line}' >&3; timeout 2 cat <&3"
    return "PONG" in cluster.in_network("bash", "-c", script)
