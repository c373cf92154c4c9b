"""Litestream begun, looked after and ended, beside an application or as its parent.

Invariants:
- The application begins when all of its databases are there and what they hold is in the store.
- It is not ended because replication fails; that is logged, and seen in ``oxlite replicate
  status``. When it ends, what it has committed is sent before this process ends.
- How far a replica is behind is what was proved: all that was committed when a sending began that
  has succeeded (``health``).
- A Litestream that ends is begun again, after a pause that grows; one that does not answer is
  killed first.
- What waits for a store or for readers sees signals, and that the application has ended.
"""

import functools
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from oxlite.operations import Restored
from oxlite.replication.children import Child, exit_code, reap
from oxlite.replication.claim import Claim, State, read_state
from oxlite.replication.complaints import Complaints, is_of_damage
from oxlite.replication.configuration import Settings, configuration
from oxlite.replication.errors import (
    AlreadyReplicated,
    LitestreamFailed,
    ReplicationError,
    StoreUnreachable,
)
from oxlite.replication.generation import continues, identity, last_noted, wal_of
from oxlite.replication.guard import Guard
from oxlite.replication.health import answers, read_now, send_now
from oxlite.replication.litestream import Litestream
from oxlite.replication.recovery import forget, make_ready
from oxlite.replication.replica import Replica, held
from oxlite.replication.workplace import Workplace

__all__ = ["Pace", "Replicator"]

_log: Final = logging.getLogger("oxlite.replication")

_PASSED_ON: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_ENDS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
_LOOK_SECONDS: Final = 0.2
_AT_ONCE: Final = 8
_GUARD_SECONDS: Final = 0.02
_IDLE_SECONDS: Final = 0.1
_TELL_SECONDS: Final = 60.0
_RENEW_SECONDS: Final = 1.0
_LEAST_BYTES_EACH_SECOND: Final = 1 << 20
"""A store that takes less is too slow: what is to be sent may be as long as the database."""

_LOOK_AGAIN_SECONDS: Final = 2.0


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
        damaged: Where it cannot read its own files for so long, all is sent anew.
        stuck: One that lives, and sends nothing for so long, is begun again.
        check_every: How often it is looked whether the store still has all that it needs.

    What is sent may be the whole database: for each MiB of it a second more.
    """

    send_every: float = 5.0
    sent_within: float = 30.0
    answers_within: float = 10.0
    begins_within: float = 60.0
    ends_within: float = 40.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
    well: float = 60.0
    damaged: float = 10.0
    stuck: float = 300.0
    check_every: float = 300.0


class _EndedError(Exception):
    """A signal has said to end, to who waits for something."""


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
        self._litestream = replace(litestream, while_waiting=self._while_waiting)
        self._replicas = list(replicas)
        self._settings = settings
        self._is_taken_over = is_taken_over
        self._claims: dict[Path, Claim] = {}
        self._states: dict[Path, State] = {}
        self._program: Child | None = None
        self._application: Child | None = None
        self._workplace = Workplace()
        self._complaints = Complaints(litestream)
        self._was_killed = False
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
        self._last_ends: float | None = None
        self._told_at = 0.0
        self._checked_at: dict[Path, float] = {}
        self._lacks: dict[Path, str] = {}

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
        with ExitStack() as stack, suppress(_EndedError):
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
            for replica in self._replicas:
                known = read_state(replica.database)
                state = State(replica.store.url, os.getpid(), "", time.time())
                if known is not None and known.sends_anew:
                    _log.warning("%s was to be sent anew, and is now", replica.database)
                    state = replace(state, sends_anew=True)
                    self._to_send_anew.add(replica.database)
                self._note(replica.database, state)
                _log.info("%s is replicated to %s", replica.database, replica.store.shown)
            stack.callback(self._workplace.delete)
            pool = ThreadPoolExecutor(min(_AT_ONCE, len(self._replicas)))
            # What these wait for has ended with Litestream.
            stack.callback(pool.shutdown)
            sender = threading.Thread(target=self._send, args=(pool,), name="oxlite-replication")
            for replica in self._replicas:
                read = functools.partial(self._read, replica.database)
                guard = Guard(replica.database, read)
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
        return 0

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

    def _while_waiting(self) -> None:
        """See, while a store is asked, whether to end; the application gets its signals."""
        if self._last_ends is not None:
            is_to_end = self._is_hurried(self._last_ends)
        elif threading.current_thread() is threading.main_thread():
            self._take_signals()
            is_to_end = self._is_ending
        else:
            is_to_end = self._stop.is_set()
        if is_to_end:
            raise _EndedError

    def _note(self, database: Path, state: State) -> None:
        self._states[database] = state
        with suppress(OSError):  # no room: whoever looks sees that it is old
            self._claims[database].write(state)

    def _write_configuration(self) -> Path:
        """What Litestream is told.

        Raises:
            ReplicationError: Its socket would have too long a path.
            OSError: It cannot be written.
        """
        if self._workplace.prepare():
            for database, state in self._states.items():
                self._note(database, replace(state, socket=self._workplace.socket))
        return self._workplace.write(
            configuration(
                self._replicas,
                Path(self._workplace.socket),
                self._settings,
                only_when_asked=bool(self._ahead),
            )
        )

    def _begin(self) -> None:
        """Begin Litestream; where readers are waited for, that is to be tried again soon.

        Raises:
            ReplicationError: That cannot be now: a store does not answer, say.
            OSError: There is no room for what it needs, or its program is not there.
        """
        self._begin_at = None
        for replica in self._replicas:
            self._claims[replica.database].keep()
            if not self._goes_on(replica.database):
                self._send_anew({replica.database})
                self._begin_at = time.monotonic() + _RENEW_SECONDS
                return
            self._see_to_copy_ahead(replica)
        path = self._write_configuration()
        self._files = {one.database: identity(one.database) for one in self._replicas}
        self._was_killed = False
        with ExitStack() as stack:
            lent: list[int] = []
            for claim in self._claims.values():
                lent += stack.enter_context(claim.lent())
            self._program = Child(
                [self._litestream.path, "replicate", "-no-expand-env", "-config", str(path)],
                env=self._litestream.environment,
                descriptors=lent,
                captures=True,
                # Ended by SIGTERM it would read once more.
                ends_with_us=signal.SIGKILL if self._ahead else signal.SIGTERM,
            )
        self._begun = time.monotonic()
        said = self._program.said
        assert said is not None
        threading.Thread(target=self._complaints.pass_on, args=(said,), daemon=True).start()
        if self._to_send_anew:  # it was lost while this one was being begun
            self._kill()

    def _see_to_copy_ahead(self, replica: Replica) -> None:
        """Note whether there is a copy whose number this line of transactions must not come to.

        Raises:
            StoreUnreachable: It does not say what it has.
        """
        noted = last_noted(replica.database)
        if noted and self._was_sent and replica.database not in self._ahead:
            return  # it goes on with what it has begun
        found = held(self._litestream, replica.store)
        ahead = None if found is None else found.ahead
        if ahead is None or noted >= ahead:  # there is none, or it is of this line
            self._ahead.pop(replica.database, None)
        else:
            self._ahead[replica.database] = ahead
            # Who is killed when it has been counted up to must not go on from there.
            self._note(replica.database, replace(self._states[replica.database], sends_anew=True))

    def _begin_again(self) -> None:
        """Begin it, or say why not and try it later: the application goes on."""
        try:
            self._begin()
            return
        except _EndedError:
            raise
        except (ReplicationError, OSError) as error:
            why = self._litestream.without_secrets(str(error))
            _log.error("nothing is replicated now: %s", why)
        except Exception:
            _log.exception("nothing is replicated now")
        self._begin_at = time.monotonic() + self._pace.pauses[-1]

    def _goes_on(self, database: Path) -> bool:
        """See that Litestream will find in the WAL what it has not read, or will send all anew.

        Returns:
            Whether it can be begun; not while somebody reads a WAL that it must not know.
        """
        # What was written while it did not look is missing in what it has read.
        guard = self._guards[database]
        end, is_kept = guard.end(), guard.is_held
        with self._anew_lock:
            is_wanted = database in self._to_send_anew
            self._to_send_anew.discard(database)
        if not is_wanted and continues(database, end, is_kept=is_kept):
            return True
        if wal_of(database) is not None and not guard.renew():
            if time.monotonic() > self._told_at:
                self._told_at = time.monotonic() + _TELL_SECONDS
                _log.warning("%s is replicated again when nobody reads its WAL any more", database)
            return False
        guard.hold()
        forget(database)
        return True

    def _send_anew(self, databases: set[Path]) -> None:
        """Have all of them sent once more: by the next Litestream, so that this one ends."""
        with self._anew_lock:
            self._to_send_anew |= databases
        for database in databases:
            self._note(database, replace(self._states[database], sends_anew=True))
        self._kill()

    def _kill(self) -> None:
        """Have Litestream end at once; it is begun again."""
        if (program := self._program) is not None:
            self._was_killed = True
            program.signal(signal.SIGKILL)

    def _patience(self, database: Path) -> float:
        """How long it may take, in seconds, to send all of a database."""
        with suppress(OSError):
            return database.stat().st_size / _LEAST_BYTES_EACH_SECOND
        return 0.0

    def _await_first_sending(self, pool: ThreadPoolExecutor) -> None:
        """Wait until all that there is now is in the store."""
        waiting = list(self._replicas)
        began_at = time.monotonic()
        patience = self._pace.begins_within
        patience += sum(self._patience(replica.database) for replica in waiting)
        told_at = began_at + _TELL_SECONDS
        while waiting and not self._is_ending:
            self._look_at_the_start()
            began = time.time()
            replica = waiting[0]
            if time.monotonic() > told_at:
                told_at = time.monotonic() + _TELL_SECONDS
                taken = time.monotonic() - began_at
                _log.info("%s is being sent, for %.0f s now", replica.database, taken)
            done = pool.submit(self._try_to_send, replica.database)
            while not done.done() and not self._is_ending:
                self._look_at_the_start()
                time.sleep(_LOOK_SECONDS / 10)
            if not done.done():
                return
            failure = done.result()
            if failure is None:
                waiting.pop(0)
                self._note_sent(replica.database, began)
            elif time.monotonic() > began_at + patience:
                raise ReplicationError(
                    f"{replica.database} could not be sent to {replica.store.shown}: {failure}"
                )
            else:
                time.sleep(_LOOK_SECONDS)

    def _look_at_the_start(self) -> None:
        self._look()
        if self._program is not None or self._is_ending:
            return
        if not (self._was_killed or self._to_send_anew):
            raise LitestreamFailed("Litestream has ended at once: see what it has logged")
        if self._begin_at is None or time.monotonic() >= self._begin_at:
            self._begin()

    def _look_after(self) -> int:
        """Until the application has ended, or a signal has said to end."""
        while True:
            self._look()
            if self._application is not None and self._application.status is not None:
                return exit_code(self._application.status)
            if self._is_ending and self._application is None:
                return 0
            if self._begin_at is not None and time.monotonic() >= self._begin_at:
                self._begin_again()
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        """See who has ended, and pass signals on."""
        reap([child for child in (self._program, self._application) if child is not None])
        self._take_signals()
        if self._program is None:
            return
        lived = time.monotonic() - self._begun
        if lived >= self._pace.well:
            self._restarts = 0
        if self._program.status is None:
            return
        pause = self._pace.pauses[0]
        if not self._was_killed:  # why it was has been said
            pause = self._pace.pauses[min(self._restarts, len(self._pace.pauses) - 1)]
            _log.error(
                "Litestream has ended (%d) after %.0f s: begun again in %g s",
                self._program.status,
                lived,
                pause,
            )
        self._restarts += 1
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
            try:
                outcomes = list(pool.map(self._send_one, self._replicas))
                if not self._stop.is_set() and self._program is not None:
                    self._judge(outcomes)
            except Exception:
                _log.exception("what was sent could not be noted")

    def _judge(self, outcomes: Sequence[bool]) -> None:
        """Kill a Litestream that cannot go on."""
        stuck = self._stuck()
        damaged = {
            path
            for path in self._failing(self._pace.damaged)
            if is_of_damage(path, self._states[path].failure or "")
        }
        if any(map(self._is_replaced, self._files)):
            _log.error("a database was replaced: Litestream is begun again with the new one")
            self._kill()  # what it has open is nobody's any more
        elif not any(outcomes) and not self._is_alive():
            _log.error("Litestream does not answer: killed, and begun again")
            self._kill()
        elif damaged:
            names = ", ".join(map(str, damaged))
            _log.error("what Litestream has noted beside %s is damaged: all is sent anew", names)
            self._send_anew(damaged)
        elif stuck:
            _log.error("Litestream has sent nothing for %g s: begun again", self._pace.stuck)
            self._kill()

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
                    "the WAL of %s was begun anew before Litestream had read it, or what that has"
                    " noted is gone: all is sent once more",
                    ", ".join(map(str, lost)),
                )
                self._send_anew(lost)

    def _read(self, database: Path, seconds: float) -> None:
        if self._ahead:
            raise LitestreamFailed("it is asked by who counts alone")
        read_now(self._workplace.socket, database, seconds=seconds)

    def _is_alive(self) -> bool:
        """Whether Litestream answers, or has not had the time to begin."""
        is_new = time.monotonic() - self._begun < self._pace.answers_within
        return is_new or answers(self._workplace.socket, seconds=self._pace.answers_within)

    def _is_replaced(self, database: Path) -> bool:
        """Whether another file has the name of one that Litestream has open, or none has.

        It would go on to read the old one, and say that all is sent.
        """
        return identity(database) not in (self._files.get(database), None)

    def _failing(self, seconds: float) -> set[Path]:
        """Of which databases nothing could be sent for so long, since Litestream was begun."""
        if time.monotonic() - self._begun < seconds:
            return set()
        long_ago = time.time() - seconds
        return {
            path
            for path, one in self._states.items()
            if one.failing_since is not None and one.failing_since <= long_ago
        }

    def _stuck(self) -> set[Path]:
        """Which may be mended by a Litestream that is begun again: what it sends may be long."""
        seconds = self._pace.stuck
        failing = self._failing(seconds)
        return {path for path in failing if path in self._failing(seconds + self._patience(path))}

    def _try_to_send(self, database: Path) -> str | None:
        """Have all sent that is committed; what went wrong, if anything."""
        guard = self._guards[database]
        committed = guard.committed()
        try:
            sent = send_now(self._workplace.socket, database, seconds=self._pace.sent_within)
            guard.see_notes()
            if database in self._ahead:
                self._go_beyond(database, sent)
            if committed is not None and not guard.has_read(committed):
                raise LitestreamFailed("Litestream has sent something else than is committed")
        except LitestreamFailed as error:
            failure = self._litestream.without_secrets(str(error))
            return self._complaints.explain(database, failure)
        self._complaints.forget(database)
        if not database.exists():
            return f"there is no {database} any more: Litestream reads a file without a name"
        return None

    def _go_beyond(self, database: Path, sent: int) -> None:
        """Have all sent anew with a number that nothing in the store has.

        Litestream goes on counting after the last transaction that was sent by itself. A whole copy
        that another has made, and whose number is higher, would be taken for one of this line, and
        a restore would join the two. So the first transaction beyond it has to be all of the
        database: it is counted up to the copy's number, and not further, with a Litestream that
        reads only when it is asked; the next one begins there with all that there is.

        Raises:
            LitestreamFailed: It is not sent yet.
        """
        ahead = self._ahead.get(database, 0)
        ends = time.monotonic() + self._pace.sent_within
        while sent < ahead and not self._stop.is_set() and time.monotonic() < ends:
            before = sent
            self._guards[database].commit_nothing()
            sent = send_now(self._workplace.socket, database, seconds=self._pace.sent_within)
            if sent == before:  # nothing can be committed now
                time.sleep(_LOOK_SECONDS)
        if sent >= ahead:
            self._send_anew({database})
        raise LitestreamFailed("all is sent anew, beyond a copy that was there")

    def _send_one(self, replica: Replica) -> bool:
        began = time.time()
        failure = self._try_to_send(replica.database) or self._look_at_place(replica)
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
            self._note_sent(replica.database, began)
            return True
        self._note(replica.database, replace(state, restarts=self._restarts))
        return failure is None

    def _note_sent(self, database: Path, moment: float) -> None:
        """All that was committed before a moment is in the store."""
        state = replace(
            self._states[database],
            sent_at=moment,
            failing_since=None,
            failure=None,
            restarts=self._restarts,
            sends_anew=database in self._to_send_anew,
        )
        self._note(database, state)

    def _look_at_place(self, replica: Replica) -> str | None:
        """Whether what was sent is still there, and restores; what is wrong, if anything.

        Litestream looks at nothing that it has sent: it would go on, and nothing would restore.
        """
        try:
            self._claims[replica.database].keep()
            if self._is_to_be_checked(replica.database):
                self._lacks.pop(replica.database, None)
                if self._has_gap(replica):
                    time.sleep(_LOOK_AGAIN_SECONDS)  # it may have been put together just then
                    if self._has_gap(replica):
                        self._lacks[replica.database] = (
                            f"{replica.store.shown} lacks some of what was sent there, and does not"
                            " restore to its end: move away what is there, and begin again"
                        )
        except AlreadyReplicated as error:
            self._kill()
            return str(error)
        except StoreUnreachable as error:
            return self._litestream.without_secrets(str(error))
        except (_EndedError, OSError):
            pass
        return self._lacks.get(replica.database)

    def _is_to_be_checked(self, database: Path) -> bool:
        now = time.monotonic()
        if now < self._checked_at.get(database, 0.0) + self._pace.check_every:
            return False
        self._checked_at[database] = now
        return True

    def _has_gap(self, replica: Replica) -> bool:
        with suppress(StoreUnreachable):  # it may be for a moment
            found = held(self._litestream, replica.store)
            return found is None or found.gap is not None
        return False

    def _end(self, pool: ThreadPoolExecutor) -> None:
        """Send what is left, and end Litestream; a signal to end that comes now ends it at once."""
        self._signals.clear()
        ends = self._last_ends = time.monotonic() + self._pace.ends_within
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
        while self._program is None and not self._is_hurried(ends):
            with suppress(_EndedError):
                self._begin_again()
            time.sleep(_LOOK_SECONDS)
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
            self._note_sent(replica.database, began)
        return failure

    def _is_hurried(self, ends: float) -> bool:
        return time.monotonic() > ends or any(number in _ENDS for number in self._signals)
