"""The loop of a worker process: prepare, wait to be released, work, hand over.

The lab sends, in this order, ``prepare`` (once), then any number of turns, each
``run`` and then ``collect``, with ``environment`` in between if wanted, then
``stop``. Handing results over is a step of its own so that no worker spends
time on it, or closes its connection, while another is still being measured.

A turn begins at an instant agreed upon beforehand on the clock that all
processes of a machine share (``perf_counter_ns``), which all have time to
reach, so that they start together however long the messages took.

Invariant: whatever goes wrong here is reported as one line, not as a hang.
"""

import gc
import importlib
import time
from abc import ABC, abstractmethod
from typing import Any

from oxlite.bench.harness.channel import Channel, Message


class Task(ABC):
    """What a workload does in a worker. Constructing it is the preparation."""

    @abstractmethod
    def __init__(self, arguments: Message) -> None:
        """Open connections, make the list of work, touch what must be warm."""

    def ready(self) -> Message:
        """Facts to report with readiness, such as the digest of the work."""
        return {}

    @abstractmethod
    def run(self, turn: Message, start_ns: int) -> None:
        """Do the measured work of one turn, keeping what was measured.

        Args:
            turn: what the workload says about this turn.
            start_ns: the agreed instant, now reached.
        """

    @abstractmethod
    def collect(self) -> tuple[Message, bytes]:
        """Hand the last turn's measurements over."""

    @abstractmethod
    def connection(self) -> tuple[Any, str]:
        """The connection that was measured, and the directory of its database."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""


def load(target: str) -> type[Task]:
    """The task class written as ``package.module:Class``."""
    module_name, _, class_name = target.partition(":")
    task: type[Task] = getattr(importlib.import_module(module_name), class_name)
    return task


def wait_until(instant_ns: int) -> None:
    """Sleep until ``instant_ns`` of the shared clock; return at once if it has passed."""
    remaining_ns = instant_ns - time.perf_counter_ns()
    if remaining_ns > 0:
        time.sleep(remaining_ns / 1e9)


def environment(task: Task, message: Message) -> Message:
    """The environment report of the measured connection."""
    from oxlite.bench.drivers.catalogue import DRIVERS
    from oxlite.environment import report

    connection, directory = task.connection()
    driver = message["driver"]
    return dict(
        report(
            connection,
            directory,
            driver=driver,
            fsync=message["fsync"],
            describe=DRIVERS.get(driver).describe,
        )
    )


def answer(task: Task, message: Message, channel: Channel) -> bool:
    """Do what ``message`` asks; whether to go on afterwards."""
    match message["do"]:
        case "run":
            gc.collect()
            wait_until(message["start_ns"])
            task.run(message["turn"], message["start_ns"])
            channel.send({"event": "finished"})
        case "collect":
            facts, payload = task.collect()
            channel.send({"event": "collected", "facts": facts}, payload)
        case "environment":
            channel.send({"event": "environment", "report": environment(task, message)})
        case "stop":
            return False
        case other:
            raise ValueError(f"a worker cannot do {other!r}")
    return True


def serve(channel: Channel) -> int:
    """Serve the lab until it says stop or is gone; the exit code of the process."""
    task: Task | None = None
    try:
        message = channel.receive()
        if message is None:
            return 0
        task = load(message["task"])(message["arguments"])
        channel.send({"event": "ready", "facts": task.ready()})
        going = True
        while going:
            message = channel.receive()
            going = message is not None and answer(task, message, channel)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        channel.send({"event": "failed", "reason": reason})
        return 1
    finally:
        if task is not None:
            task.close()
    return 0
