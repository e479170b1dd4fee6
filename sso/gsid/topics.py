"""The topics of the bus that wake the poll and the socket of a session."""

from sso.bus.bus import Bus


def poll_topic(gsid: str) -> str:
    return f"poll:{gsid}"


def socket_topic(gsid: str) -> str:
    return f"socket:{gsid}"


def publish_poll(bus: Bus, gsid: str, worker: str | None) -> None:
    """Wakes the poll that the worker holds. Does nothing if no worker holds one."""
    if worker is not None:
        bus.publish(poll_topic(gsid), worker)


def publish_socket(bus: Bus, gsid: str, worker: str | None) -> None:
    """Wakes the socket that is connected to the worker. Does nothing if there is none."""
    if worker is not None:
        bus.publish(socket_topic(gsid), worker)
