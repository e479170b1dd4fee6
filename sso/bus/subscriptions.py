"""The subscriptions of a worker: a Trio memory channel or a callback that is signalled when its topic has changed."""

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Protocol

import trio


class Rescans(Enum):
    """When a subscriber is signalled without a message, because one may have been lost."""

    NEVER = "never"  # another task checks for many subscribers at once
    OFTEN = "often"  # every few seconds
    RARELY = "rarely"  # every half minute while the bus is connected, otherwise every few seconds


class Subscriber(Protocol):
    rescans: Rescans

    @property
    def signal(self) -> Callable[[], None]:
        """Called when the topic may have changed."""


class CallbackSubscription:
    """Calls a function within its ``with`` block, for a task that waits for something else at the same time."""

    __slots__ = ("_label", "_subscriptions", "rescans", "signal")

    def __init__(
        self, subscriptions: "Subscriptions", label: str, rescans: Rescans, signal: Callable[[], None]
    ) -> None:
        self._subscriptions = subscriptions
        self._label = label
        self.rescans = rescans
        self.signal = signal

    def __enter__(self) -> None:
        self._subscriptions.add(self._label, self)

    def __exit__(self, *_: object) -> None:
        self._subscriptions.remove(self._label, self)


class Subscription:
    """Both ends of a channel, open within its ``with`` block. There may be ten thousand: slots, and no generator."""

    __slots__ = ("_label", "_receive", "_send", "_subscriptions", "rescans")

    def __init__(self, subscriptions: "Subscriptions", label: str, rescans: Rescans) -> None:
        self._subscriptions = subscriptions
        self._label = label
        self._send, self._receive = trio.open_memory_channel[None](1)
        self.rescans = rescans

    def __enter__(self) -> trio.MemoryReceiveChannel[None]:
        self._subscriptions.add(self._label, self)
        return self._receive

    def __exit__(self, *_: object) -> None:
        self._subscriptions.remove(self._label, self)
        self._send.close()
        self._receive.close()

    def signal(self) -> None:
        """The topic may have changed."""
        with suppress(trio.WouldBlock):  # a signal is pending already
            self._send.send_nowait(None)


class Subscriptions:
    def __init__(self) -> None:
        self._by_label: dict[str, tuple[Subscriber, ...]] = {}
        self._rescanning: set[Subscriber] = set()

    def add(self, label: str, subscription: Subscriber) -> None:
        self._by_label[label] = (*self._by_label.get(label, ()), subscription)
        if subscription.rescans is not Rescans.NEVER:
            self._rescanning.add(subscription)

    def remove(self, label: str, subscription: Subscriber) -> None:
        others = tuple(other for other in self._by_label[label] if other is not subscription)
        if others:
            self._by_label[label] = others
        else:
            del self._by_label[label]
        self._rescanning.discard(subscription)

    def signal(self, label: str) -> None:
        for subscription in self._by_label.get(label, ()):
            subscription.signal()

    def rescan(self, *kinds: Rescans) -> None:
        """Signals the subscribers that rescan in one of these ways."""
        for subscription in self._rescanning:
            if subscription.rescans in kinds:
                subscription.signal()
