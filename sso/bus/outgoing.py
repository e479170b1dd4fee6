"""The topics that wait to be sent to other workers. All that wait for one worker share a message."""

from collections.abc import Iterable

from sso.bus.transport import MAX_PAYLOAD, Message

MAX_WAITING = 50_000  # topics, while the bus is not connected
MAX_MESSAGES = 200  # sent at a time


class Outgoing:
    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, None]] = {}  # labels by worker, in the order in which they were added
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, worker: str, label: str) -> bool:
        """Returns False if there are too many. A topic that waits already is not added again."""
        labels = self._waiting.setdefault(worker, {})
        if label in labels:
            return True
        if self._count >= MAX_WAITING or len(label) > MAX_PAYLOAD:
            return False
        labels[label] = None
        self._count += 1
        return True

    def take(self) -> list[Message]:
        """Removes the topics that waited longest and returns them as messages."""
        messages: list[Message] = []
        while self._waiting and len(messages) < MAX_MESSAGES:
            worker = next(iter(self._waiting))
            labels = self._waiting.pop(worker)
            self._count -= len(labels)
            messages += [Message(worker, payload) for payload in _payloads(labels)]
        return messages

    def put_back(self, messages: Iterable[Message]) -> None:
        """Adds the topics of messages that could not be sent."""
        for message in messages:
            for label in message.payload.split("\n"):
                self.add(message.worker, label)


def _payloads(labels: Iterable[str]) -> list[str]:
    """Joins the labels to as few payloads as possible. Labels are ASCII, so a character is a byte."""
    payloads: list[str] = []
    lines: list[str] = []
    length = 0
    for label in labels:
        if length + len(label) > MAX_PAYLOAD:
            payloads.append("\n".join(lines))
            lines, length = [], 0
        lines.append(label)
        length += len(label) + 1
    return [*payloads, "\n".join(lines)] if lines else payloads
