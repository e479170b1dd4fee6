"""The default name of a node."""

import re
import socket

from sso.core.bind_address import Bind


def default_node_name(bind: Bind) -> str:
    """Returns the host name and the port, or the name of the Unix socket. It differs between the nodes of a host."""
    place = bind.path.rpartition("/")[2] if bind.path else bind.port
    return re.sub(r"[^A-Za-z0-9._:-]", "-", f"{socket.gethostname()}:{place}")[-64:]
