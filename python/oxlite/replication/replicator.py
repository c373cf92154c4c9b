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

import functools
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
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO, Final

from oxlite.operations import Restored
from oxlite.replication.children import Child, exit_code, reap
from oxlite.replication.claim import Claim, State
from oxlite.replication.configuration import Settings, configuration
from oxlite.replication.errors import LitestreamFailed, ReplicationError, StoreUnreachable
from oxlite.replication.generation import continues, has_noted, identity, wal_of
from oxlite.replication.guard import Guard
from oxlite.replication.health import answers, read_now, send_now
from oxlite.replication.litestream import Litestream
from oxlite.replication.recovery import forget, make_ready
from oxlite.replication.replica import Replica, held

__all__ = ["Pace", "Replicator"]

_log: Final = logging.getLogger("oxlite.replication")

_PASSED_ON: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_ENDS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
_LOOK_SECONDS: Final = 0.2
_AT_ONCE: Final = 8
_GUARD_SECONDS: Final = 0.02
_IDLE_SECONDS: Final = 0.1
_READS_WITHIN_SECONDS: Final = 1.0
_TELL_SECONDS: Final = 60.0
_LEVELS: Final = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.DEBUG}


@dataclass(frozen=True, slots=True)
class Pace:
    """How long is waited for what; all in seconds.

    Attributes:
        send_every: How often all that is committed is had sent, and that is noted.
        sent_within: How long that may take.
        answers_within: How long Litestream may take to say that it lives.
        begins_within: How long it may take until what there is has been sent for the first time.
        ends_within: How long it may take to end; and how long sending the last may.
        pauses: Before it is begun again, the first time and those that follow.
        well: After so long it counts as begun for the first time.
        stuck: One that lives, and sends nothing for so long, is begun again.
    """

    send_every: float = 5.0
    sent_within: float = 30.0
    answers_within: float = 10.0
    begins_within: float = 60.0
    ends_within: float = 40.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
    well: float = 60.0
    stuck: float = 300.0


class Replicator:
    """See the module.

    Args:
        litestream: The program.
        replicas: What goes where.
        settings: How.
        is_taken_over: As for ``make_ready``.
        pace: How long is waited for what.
    """

    def __init__(
        self,
        litestream: Litestream,
        replicas: Sequence[Replica],
        settings: Settings | None = None,
        *,
        is_taken_over: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._pace = pace or Pace()
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
        self._files: dict[Path, tuple[int, int] | None] = {}
        self._to_send_anew: set[Path] = set()
        self._anew_lock = threading.Lock()
        self._was_sent = False
        self._ahead: dict[Path, int] = {}
        self._stop = threading.Event()
        self._guards: dict[Path, Guard] = {}
        self._signals: list[int] = []
        self._is_ending = False
        self._complaint = ""

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
                restored = self._make_ready(replica, claim)
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
            pool = ThreadPoolExecutor(min(_AT_ONCE, len(self._replicas)))
            # What these wait for has ended with Litestream.
            stack.callback(pool.shutdown)
            sender = threading.Thread(target=self._send, args=(pool,), name="oxlite-replication")
            for replica in self._replicas:
                guard = Guard(replica.database, functools.partial(self._read, replica.database))
                self._guards[replica.database] = guard
                stack.callback(guard.let_go)
                guard.hold()
            stack.callback(self._end, pool)
            watcher = threading.Thread(target=self._guard, name="oxlite-guard")
            watcher.start()
            stack.callback(watcher.join)
            stack.callback(self._stop.set)
            self._begin()
            self._await_first_sending(pool)
            if self._is_ending:
                return 0
            self._was_sent = True
            if command:
                self._application = Child(command)
            sender.start()
            return self._look_after()

    def _make_ready(self, replica: Replica, claim: Claim) -> Restored | None:
        state = State(replica.store.url, os.getpid(), "", time.time())
        is_noted = False

        def note() -> None:
            nonlocal is_noted
            claim.write(state)
            is_noted = True

        try:
            return make_ready(
                self._litestream,
                replica,
                is_taken_over=self._is_taken_over,
                before_restore=note,
            )
        except BaseException:
            if is_noted and not replica.database.exists():
                claim.clear()
            raise

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _note(self, database: Path, state: State) -> None:
        self._states[database] = state
        with suppress(OSError):  # no room: whoever looks sees that it is old
            self._claims[database].write(state)

    def _begin(self, ends: float | None = None) -> None:
        """Begin Litestream; not where it must wait for readers until a signal or a time ends it."""
        for replica in self._replicas:
            # What was written while it did not look is missing in what it has read.
            guard = self._guards[replica.database]
            end, is_kept = guard.end(), guard.is_held
            with self._anew_lock:
                is_wanted = replica.database in self._to_send_anew
                self._to_send_anew.discard(replica.database)
            if is_wanted or not continues(replica.database, end, is_kept=is_kept):
                if not self._renew(replica.database, ends):
                    self._send_anew({replica.database})
                    return
                forget(replica.database)
            if not has_noted(replica.database):
                try:
                    found = held(self._litestream, replica.store)
                except StoreUnreachable as error:  # Litestream could not begin either
                    if not self._was_sent:
                        raise
                    _log.error("%s is not replicated: %s", replica.database, error)
                    self._begin_at = time.monotonic() + self._pace.pauses[-1]
                    return
                if found is not None and found.ahead is not None:
                    self._ahead[replica.database] = found.ahead
        self._files = {one.database: identity(one.database) for one in self._replicas}
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
        if self._to_send_anew:  # it was lost while this one was being begun
            self._program.signal(signal.SIGKILL)

    def _send_anew(self, databases: set[Path]) -> None:
        """Have all of them sent once more: by the next Litestream, so that this one ends."""
        with self._anew_lock:
            self._to_send_anew |= databases
        if (program := self._program) is not None:
            program.signal(signal.SIGKILL)

    def _renew(self, database: Path, ends: float | None) -> bool:
        """See that the WAL has nothing that Litestream seems to know, and whether it has not."""
        guard, told_at = self._guards[database], time.monotonic()
        while wal_of(database) is not None and not guard.renew():
            if self._is_hurried(ends) if ends is not None else self._is_ending:
                return False
            if time.monotonic() > told_at:
                told_at = time.monotonic() + _TELL_SECONDS
                _log.warning("%s is replicated again when nobody reads its WAL any more", database)
            if ends is None:
                self._take_signals()
            time.sleep(_LOOK_SECONDS)
        guard.hold()
        return True

    def _await_first_sending(self, pool: ThreadPoolExecutor) -> None:
        """Wait until all that there is now is in the store."""
        waiting = list(self._replicas)
        ends = time.monotonic() + self._pace.begins_within
        while waiting and not self._is_ending:
            self._look_at_the_start()
            began = time.time()
            replica = waiting[0]
            done = pool.submit(self._try_to_send, replica.database)
            while not done.done() and not self._is_ending:
                self._look_at_the_start()
                time.sleep(_LOOK_SECONDS / 10)
            if not done.done():
                return
            failure = done.result()
            if failure is None:
                waiting.pop(0)
                self._note(replica.database, replace(self._states[replica.database], sent_at=began))
            elif time.monotonic() > ends:
                raise ReplicationError(
                    f"{replica.database} could not be sent to {replica.store.shown}: {failure}"
                )
            else:
                time.sleep(_LOOK_SECONDS)

    def _look_at_the_start(self) -> None:
        self._look()
        if self._program is None and self._to_send_anew:
            self._begin()
        if self._program is None and not self._is_ending:
            raise LitestreamFailed("Litestream has ended at once: see what it has logged")

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
        self._take_signals()
        if self._program is not None and self._program.status is not None:
            lived = time.monotonic() - self._begun
            if lived >= self._pace.well:
                self._restarts = 0
            pause = self._pace.pauses[min(self._restarts, len(self._pace.pauses) - 1)]
            _log.error(
                "Litestream has ended (%d) after %.0f s: begun again in %g s",
                self._program.status,
                lived,
                pause,
            )
            self._program = None
            self._begin_at = time.monotonic() + pause

    def _take_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            if self._application is not None:
                self._application.signal(number)
            elif number in _ENDS:
                self._is_ending = True

    def _send(self, pool: ThreadPoolExecutor) -> None:
        """Have all that is committed sent, again and again, and note how far that came."""
        while not self._stop.wait(self._pace.send_every):
            outcomes = list(pool.map(self._send_one, self._replicas))
            program = self._program
            if self._stop.is_set() or program is None:
                continue
            if any(map(self._is_replaced, self._files)):
                _log.error("a database was replaced: Litestream is begun again with the new one")
                program.signal(signal.SIGKILL)  # what it has open is nobody's any more
            elif not any(outcomes) and not self._is_alive():
                _log.error("Litestream does not answer: killed, and begun again")
                program.signal(signal.SIGKILL)
            elif self._is_stuck():
                _log.error("Litestream has sent nothing for %g s: begun again", self._pace.stuck)
                program.signal(signal.SIGKILL)

    def _guard(self) -> None:
        """Keep the WAL from being begun anew before it was read; if it was, have all sent anew."""
        pause = _GUARD_SECONDS
        while not self._stop.wait(pause):
            program = self._program
            reads = program is not None and program.status is None
            lost = set()
            for database, guard in self._guards.items():
                try:
                    if guard.look(reads=reads) and not self._is_replaced(database):
                        lost.add(database)
                except Exception:
                    _log.exception("the WAL of %s cannot be looked after", database)
                    guard.let_go()
            is_busy = any(guard.is_busy for guard in self._guards.values())
            pause = _GUARD_SECONDS if is_busy else _IDLE_SECONDS
            if lost:
                _log.warning(
                    "the WAL of %s was begun anew before Litestream had read it: all is sent once"
                    " more",
                    ", ".join(map(str, lost)),
                )
                self._send_anew(lost)

    def _read(self, database: Path) -> None:
        read_now(self._socket, database, seconds=_READS_WITHIN_SECONDS)

    def _is_alive(self) -> bool:
        """Whether Litestream answers, or has not had the time to begin."""
        is_new = time.monotonic() - self._begun < self._pace.answers_within
        return is_new or answers(self._socket, seconds=self._pace.answers_within)

    def _is_replaced(self, database: Path) -> bool:
        """Whether another file has the name of one that Litestream has open, or none has.

        It would go on to read the old one, and say that all is sent.
        """
        return identity(database) not in (self._files.get(database), None)

    def _is_stuck(self) -> bool:
        """Whether it has failed for long since it was begun; what to do before it begins again.

        Files of its own that are gone or damaged mend by being made anew.
        """
        if time.monotonic() - self._begun < self._pace.stuck:
            return False
        long_ago = time.time() - self._pace.stuck
        stuck = [
            one
            for one in self._states.values()
            if one.failing_since is not None and one.failing_since <= long_ago
        ]
        damaged = {
            path for path, one in self._states.items() if "ltx" in (one.failure or "").lower()
        }
        if stuck and damaged:
            self._send_anew(damaged)
        return bool(stuck)

    def _try_to_send(self, database: Path) -> str | None:
        """Have all sent that is committed; what went wrong, if anything."""
        guard = self._guards[database]
        committed = guard.committed()
        try:
            sent = send_now(self._socket, database, seconds=self._pace.sent_within)
            if database in self._ahead:
                self._go_beyond(database, sent)
            if committed is not None and not guard.has_read(committed):
                raise LitestreamFailed("Litestream has sent something else than is committed")
        except LitestreamFailed as error:
            failure = self._litestream.without_secrets(str(error))
            # Why a store takes nothing is in its log alone, and there twice a minute.
            return f"{failure}: {self._complaint}" if self._complaint else failure
        self._complaint = ""
        if not database.exists():
            return f"there is no {database} any more: Litestream reads a file without a name"
        return None

    def _go_beyond(self, database: Path, sent: int) -> None:
        """Have all sent anew with a number that nothing in the store has.

        Litestream goes on counting after the last transaction that was sent by itself. A whole copy
        that another has made, and whose number is higher, would be taken for one of this line.

        Raises:
            LitestreamFailed: It is not sent yet.
        """
        ahead = self._ahead[database]
        while sent <= ahead and not self._stop.is_set():
            self._guards[database].commit_nothing()
            sent = send_now(self._socket, database, seconds=self._pace.sent_within)
        if sent > ahead:
            del self._ahead[database]
            self._send_anew({database})
        raise LitestreamFailed("all is sent anew, beyond a copy that was there")

    def _send_one(self, replica: Replica) -> bool:
        began = time.time()
        failure = self._try_to_send(replica.database)
        if failure is not None and self._stop.is_set():
            return False  # it is being ended
        state = self._states[replica.database]
        if failure is not None:
            if state.failing_since is None:
                _log.error("%s is not replicated: %s", replica.database, failure)
            state = replace(state, failing_since=state.failing_since or began, failure=failure)
        elif identity(replica.database) == self._files.get(replica.database):
            if state.failing_since is not None:
                _log.warning("%s is replicated again", replica.database)
            state = replace(state, sent_at=began, failing_since=None, failure=None)
        self._note(replica.database, replace(state, restarts=self._restarts))
        return failure is None

    def _end(self, pool: ThreadPoolExecutor) -> None:
        """Send what is left, and end Litestream; a signal to end that comes now ends it at once."""
        self._signals.clear()
        ends = time.monotonic() + self._pace.ends_within
        if (self._program is None or self._to_send_anew) and self._was_sent:
            self._begin_for_the_last(ends)
        program = self._program
        if program is None or program.status is not None:
            return
        left = {replica: pool.submit(self._send_last, replica) for replica in self._replicas}
        while not all(one.done() for one in left.values()) and not self._is_hurried(ends):
            reap([program])
            time.sleep(_LOOK_SECONDS / 10)
        for replica, done in left.items():
            failure = done.result() if done.done() else "there was no time for it"
            if failure is not None:
                _log.error("the last of %s was not sent: %s", replica.database, failure)
        is_hurried = not all(one.done() for one in left.values())
        program.signal(signal.SIGKILL if is_hurried else signal.SIGTERM)
        ends = time.monotonic() + self._pace.ends_within
        while program.status is None and not self._is_hurried(ends):
            reap([program])
            time.sleep(_LOOK_SECONDS / 10)
        if program.status is None:
            _log.error("Litestream does not end: killed")
            program.signal(signal.SIGKILL)
            while program.status is None:
                reap([program])
                time.sleep(_LOOK_SECONDS / 10)

    def _begin_for_the_last(self, ends: float) -> None:
        """It was killed, or has ended, just now: what is left is sent all the same."""
        program = self._program
        while program is not None and program.status is None and not self._is_hurried(ends):
            reap([program])
            time.sleep(_LOOK_SECONDS / 10)
        self._program = None
        if not self._is_hurried(ends):
            self._begin(ends)
        if self._program is None:
            _log.error("the last was not sent: Litestream could not be begun again")

    def _send_last(self, replica: Replica) -> str | None:
        began = time.time()
        failure = self._try_to_send(replica.database)
        while failure is not None and time.monotonic() - self._begun < self._pace.answers_within:
            time.sleep(_LOOK_SECONDS)  # it was begun just now
            if self._signals:
                break
            failure = self._try_to_send(replica.database)
        if failure is None:
            state = self._states[replica.database]
            self._note(
                replica.database, replace(state, sent_at=began, failing_since=None, failure=None)
            )
        return failure

    def _is_hurried(self, ends: float) -> bool:
        return time.monotonic() > ends or any(number in _ENDS for number in self._signals)

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
                    told = self._litestream.without_secrets(text)
                    if level >= logging.ERROR:
                        self._complaint = told
                    _log.log(level, "Litestream: %s", told)
