"""Names, addresses and folders of the cluster."""

import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(os.environ.get("SSO_CLUSTER_DIR", "/var/tmp/sso-cluster"))
NETWORK = "10.83.0.0/24"  # exists only inside the namespaces
CERTIFICATES = FOLDER / "certificates"
CONFIG = Path(__file__).parents[2] / "deploy/cluster"


@dataclass(frozen=True)
class Machine:
    """A network namespace with an address. ``number`` is the last part of its address."""

    number: int
    name: str

    @property
    def address(self) -> str:
        return f"10.83.0.{self.number}"

    @property
    def namespace(self) -> str:
        return f"sso-cluster-{self.name}"

    @property
    def port(self) -> str:
        """The name of its port at the switch."""
        return f"port-{self.name}"

    @property
    def folder(self) -> Path:
        return FOLDER / self.name


SWITCH = "sso-cluster-switch"
NODES = tuple(Machine(number, f"m{number}") for number in (1, 2, 3))
PROXY = Machine(254, "proxy")  # haproxy, and the clients
MACHINES = (*NODES, PROXY)
BASE_URL = f"http://{PROXY.address}:8000"
