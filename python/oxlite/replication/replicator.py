"""Litestream begun, looked after and ended, beside an application or as its parent.

Invariants:
- The application begins when all of its databases are there and what they hold is in the store.
- It is not ended because replication fails; that is logged, and seen in ``oxlite replicate
  status``. When it ends, what it has committed is sent before this process ends.
- How far a replica is behind is what was proved: all that was committed when a sending began that
  has succeeded (``health``).
- A Litestream that ends is begun again, after a pause that grows; one that does not answer is
  killed first.
"""

import json
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO, Final

from oxlite.replication.children import Child, exit_code, reap
from oxlite.replication.claim import Claim, State
from oxlite.replication.configuration import Settings, configuration
from oxlite.replication.errors import LitestreamFailed, ReplicationError
from oxlite.replication.health import answers, send_now
from oxlite.replication.litestream import Litestream
from oxlite.replication.recovery import make_ready
from oxlite.replication.replica import Replica

__all__ = ["Replicator"]

_log: Final = logging.getLogger("oxlite.replication")

_PASSED_ON: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_ENDS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
_SEND_EVERY_SECONDS: Final = 5.0
_SENT_WITHIN_SECONDS: Final = 30.0
_ANSWERS_WITHIN_SECONDS: Final = 10.0
_BEGINS_WITHIN_SECONDS: Final = 60.0
_ENDS_WITHIN_SECONDS: Final = 40.0
_PAUSES_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
_WELL_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_AT_ONCE: Final = 8
_LEVELS: Final = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.DEBUG}


class Replicator:
    """See the module.

    Args:
        litestream: The program.
        replicas: What goes where.
        settings: How.
        is_taken_over: As for ``make_ready``.
    """

    def __init__(
        self,
        litestream: Litestream,
        replicas: Sequence[Replica],
        settings: Settings | None = None,
        *,
        is_taken_over: bool = False,
    ) -> None:
        self._litestream = litestream
        self._replicas = list(replicas)
        self._settings = settings
        self._is_taken_over = is_taken_over
        self._claims: dict[Path, Claim] = {}
        self._states: dict[Path, State] = {}
        self._program: Child | None = None
        self._application: Child | None = None
        self._socket = ""
        self._configuration = ""
        self._restarts = 0
        self._begun = 0.0
        self._begin_at: float | None = None
        self._signals: list[int] = []
        self._is_ending = False

    def run(self, command: Sequence[str] = ()) -> int:
        """Replicate until a signal says to end; or, with an application, until that ends.

        Args:
            command: The application and its arguments.

        Returns:
            The exit code: the application's, or 0.

        Raises:
            ReplicationError: It cannot begin; the application was not begun.
            OperationsError: A database that was missing could not be restored.
            OSError: The application cannot be begun.
        """
        with ExitStack() as stack:
            for name in _PASSED_ON:
                number = getattr(signal, name)
                before = signal.signal(number, self._note_signal)
                stack.callback(signal.signal, number, before)
            for replica in self._replicas:
                claim = stack.enter_context(Claim(replica))
                self._claims[replica.database] = claim
                restored = make_ready(self._litestream, replica, is_taken_over=self._is_taken_over)
                if restored is not None:
                    _log.warning(
                        "%s was missing: restored from %s, and verified",
                        replica.database,
                        replica.store.shown,
                    )
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="oxlite-"))
            self._socket = os.path.join(directory, "socket")  # noqa: PTH118 - text
            path = Path(directory, "litestream.yml")
            path.write_text(
                json.dumps(configuration(self._replicas, Path(self._socket), self._settings))
            )
            self._configuration = str(path)
            for replica in self._replicas:
                self._note(
                    replica.database,
                    State(replica.store.url, os.getpid(), self._socket, time.time()),
                )
            stack.callback(self._end)
            self._begin()
            self._await_first_sending()
            if self._is_ending:
                return 0
            if command:
                self._application = Child(command)
            stop = threading.Event()
            sender = threading.Thread(target=self._send, args=(stop,), name="oxlite-replication")
            sender.start()
            try:
                return self._look_after()
            finally:
                stop.set()
                sender.join()

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _note(self, database: Path, state: State) -> None:
        self._states[database] = state
        with suppress(OSError):  # no room: whoever looks sees that it is old
            self._claims[database].write(state)

    def _begin(self) -> None:
        """Begin Litestream."""
        with ExitStack() as stack:
            lent: list[int] = []
            for claim in self._claims.values():
                lent += stack.enter_context(claim.lent())
            self._program = Child(
                [
                    self._litestream.path,
                    "replicate",
                    "-no-expand-env",
                    "-config",
                    self._configuration,
                ],
                env=self._litestream.environment,
                descriptors=lent,
                captures=True,
                ends_with_us=True,
            )
        self._begun = time.monotonic()
        self._begin_at = None
        said = self._program.said
        assert said is not None
        threading.Thread(target=self._pass_on, args=(said,), daemon=True).start()

    def _await_first_sending(self) -> None:
        """Wait until all that there is now is in the store."""
        waiting = list(self._replicas)
        ends = time.monotonic() + _BEGINS_WITHIN_SECONDS
        failure = "it does not answer"
        while waiting and not self._is_ending:
            self._look()
            if self._program is None:
                raise LitestreamFailed("Litestream has ended at once: see what it has logged")
            began = time.time()
            try:
                send_now(self._socket, waiting[0].database, seconds=_SENT_WITHIN_SECONDS)
            except LitestreamFailed as error:
                failure = str(error)
                if time.monotonic() > ends:
                    raise ReplicationError(
                        f"{waiting[0].database} could not be sent to {waiting[0].store.shown}:"
                        f" {failure}"
                    ) from None
                time.sleep(_LOOK_SECONDS)
                continue
            replica = waiting.pop(0)
            self._note(replica.database, replace(self._states[replica.database], sent_at=began))

    def _look_after(self) -> int:
        """Until the application has ended, or a signal has said to end."""
        while True:
            self._look()
            if self._application is not None and self._application.status is not None:
                return exit_code(self._application.status)
            if self._is_ending and self._application is None:
                return 0
            if self._begin_at is not None and time.monotonic() >= self._begin_at:
                self._restarts += 1
                self._begin()
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        """See who has ended, and pass signals on."""
        reap([child for child in (self._program, self._application) if child is not None])
        while self._signals:
            number = self._signals.pop(0)
            if self._application is not None:
                self._application.signal(number)
            elif number in _ENDS:
                self._is_ending = True
        if self._program is not None and self._program.status is not None:
            lived = time.monotonic() - self._begun
            if lived >= _WELL_SECONDS:
                self._restarts = 0
            pause = _PAUSES_SECONDS[min(self._restarts, len(_PAUSES_SECONDS) - 1)]
            _log.error(
                "Litestream has ended (%d) after %.0f s: begun again in %g s",
                self._program.status,
                lived,
                pause,
            )
            self._program = None
            self._begin_at = time.monotonic() + pause

    def _send(self, stop: threading.Event) -> None:
        """Have all that is committed sent, again and again, and note how far that came."""
        with ThreadPoolExecutor(min(_AT_ONCE, len(self._replicas))) as pool:
            while not stop.wait(_SEND_EVERY_SECONDS):
                outcomes = list(pool.map(self._send_one, self._replicas))
                program = self._program
                if not any(outcomes) and program is not None and not self._is_alive():
                    _log.error("Litestream does not answer: killed, and begun again")
                    program.signal(signal.SIGKILL)

    def _is_alive(self) -> bool:
        """Whether Litestream answers, or has not had the time to begin."""
        is_new = time.monotonic() - self._begun < _BEGINS_WITHIN_SECONDS
        return is_new or answers(self._socket, seconds=_ANSWERS_WITHIN_SECONDS)

    def _send_one(self, replica: Replica) -> bool:
        began = time.time()
        state = self._states[replica.database]
        try:
            send_now(self._socket, replica.database, seconds=_SENT_WITHIN_SECONDS)
        except LitestreamFailed as error:
            if state.failing_since is None:
                _log.error("%s is not replicated: %s", replica.database, error)
            since = state.failing_since or began
            state = replace(state, failing_since=since, failure=str(error))
        else:
            if state.failing_since is not None:
                _log.warning("%s is replicated again", replica.database)
            state = replace(state, sent_at=began, failing_since=None, failure=None)
        self._note(replica.database, replace(state, restarts=self._restarts))
        return state.failure is None

    def _end(self) -> None:
        """Send what is left, and end Litestream."""
        program = self._program
        if program is None or program.status is not None:
            return
        for replica in self._replicas:
            began = time.time()
            try:
                send_now(self._socket, replica.database, seconds=_SENT_WITHIN_SECONDS)
            except LitestreamFailed as error:
                _log.error("the last of %s was not sent: %s", replica.database, error)
            else:
                state = self._states[replica.database]
                self._note(
                    replica.database,
                    replace(state, sent_at=began, failing_since=None, failure=None),
                )
        program.signal(signal.SIGTERM)
        ends = time.monotonic() + _ENDS_WITHIN_SECONDS
        while program.status is None and time.monotonic() < ends:
            reap([program])
            time.sleep(_LOOK_SECONDS / 10)
        if program.status is None:
            _log.error("Litestream does not end: killed")
            program.signal(signal.SIGKILL)
            while program.status is None:
                reap([program])
                time.sleep(_LOOK_SECONDS / 10)

    def _pass_on(self, said: IO[bytes]) -> None:
        """Log what Litestream says, without credentials."""
        with said:
            for line in said:
                text = line.decode(errors="replace").strip()
                level = logging.WARNING
                with suppress(ValueError, AttributeError, TypeError):
                    document = json.loads(text)
                    level = _LEVELS.get(str(document.pop("level", "")), logging.DEBUG)
                    document.pop("time", None)
                    message = str(document.pop("msg", ""))
                    more = " ".join(f"{name}={value}" for name, value in document.items())
                    text = f"{message} {more}".strip()
                if text:
                    _log.log(level, "Litestream: %s", self._litestream.without_secrets(text))
