"""Rounds: some notify, some listen, all of them are killed or stopped; then all must have arrived.

A round lasts for as long as is drawn, from the twentieth part of a second on. Then nobody notifies
any more: of those who did, some are killed and some pause. What the table has by then must come to
each listener that is there; commits that were not heard of show here, where none follows.

What is drawn follows from the seed: who notifies and how, who listens and how, who is killed or
stopped for how long, and when another program has a checkpoint made or the database rebuilt. Some
listeners are away, or take nothing, until so much has been notified that what they have missed is
not kept any more.

Invariant: nothing waits without a limit, and no child outlives this process.
"""

import mmap
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.kill_campaigns import WrongError
from tests.notify_kills import publishers
from tests.notify_kills.chain import KEPT, Chain
from tests.notify_kills.family import Family
from tests.notify_kills.history import NEVER, History, Row
from tests.notify_kills.listeners import FACES, Life
from tests.notify_kills.publishers import OTHERS, OURS, WRITERS_AT_MOST, Told, Writer, writers_of
from tests.notify_kills.tally import (
    AWAYS,
    CALM,
    ENDS,
    LISTENERS_KILLED,
    MAINTAINERS_KILLED,
    MAINTENANCE,
    OTHERS_KILLED,
    OURS_KILLED,
    REFUSED,
    ROUNDS,
    STOPS,
    VACUUMS,
    WATCHERS_KILLED,
    WATCHERS_STOPPED,
    WRITING_KILLED,
    Tally,
)
from tests.pages import is_watcher, remove_page_of, signals_page_of

import oxlite

HOSTS = (
    (("*",),),
    (("b.*",), ("a", "c")),
    (("b.1", "c.*"), ("*",)),
    (("d", "b.1*"),),
)
"""The processes that listen, and to what each of their listeners does."""

_FRESH_CHAIN = 4
"""This one begins anew now and then, from where it is, as if it had never listened."""

_SLOTS = (OURS, OURS, OTHERS, OTHERS)
_DEADLINE_SECONDS = 5.0
_LONG_SECONDS = 60.0
_LOOK_SECONDS = 0.002
_COLLECT_SECONDS = 0.25
_ROUNDS_SECONDS = (0.05, 0.1, 0.2, 0.5, 0.5, 1.0, 2.0)
_LONGEST_STOP_SECONDS = 0.8
_EVENTS_IN_A_SECOND = 7.0
_AWAY = 0.04
_AWAY_FOR = (1_500, 6_000, 20_000, KEPT + 2_000, KEPT + 20_000)
_ROUNDS_OF_A_CHECK = 50
_CALM = 0.15
_CALM_SECONDS = 1.3


@dataclass
class _Publisher:
    pid: int
    is_ours: bool
    writers: dict[int, int]
    """The numbers of its writers, by their places."""


@dataclass
class _Host:
    """A process that listens."""

    chains: list[int]
    pid: int | None = None
    away_until: int = 0
    """It is not there until the history is as long as that."""
    lazy_until: int = 0
    """It is there, and takes nothing until then."""


class Campaign:
    """Kills, round by round."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.tally = Tally()
        self._folder = folder
        self._path = folder / "kills.db"
        self._seed = seed
        self._source = random.Random(seed)
        places = len(_SLOTS) * WRITERS_AT_MOST
        words = memoryview(mmap.mmap(-1, 8 * (3 * places + 1 + len(HOSTS)))).cast("Q")
        words[0] = 1
        self._told = Told(
            words[:1],
            words[1 : 1 + places],
            words[1 + places : 1 + 2 * places],
            words[1 + 2 * places : 1 + 3 * places],
        )
        self._release = words[1 + 3 * places :]
        self._family = Family(folder)
        self._writers = 0
        self._others: list[int] = []
        self._publishers: dict[int, _Publisher] = {}
        self._hosts: list[_Host] = []
        self._chains: list[Chain] = []
        self._logs: list[tuple[Path, int]] = []
        self._history = History()
        self._maintainer: tuple[int, str] | None = None
        self._page = Path()

    def run(
        self, kills: int, notifications: int, progress: Callable[[Tally], None] = lambda tally: None
    ) -> None:
        """Goes on until so many have been killed, and so much has been notified.

        Raises:
            WrongError: something is lost, doubled or in disorder, or somebody fails or hangs.
        """
        try:
            self._begin()
            while self.tally.kills < kills or self.tally.notifications < notifications:
                self._round()
                if self._source.random() < _CALM:
                    self._calm_round()
                if self.tally.counts[ROUNDS] % _ROUNDS_OF_A_CHECK == 0:
                    self._check_integrity()
                progress(self.tally)
            self._finish()
        finally:
            self._family.end_all()
            if self._path.exists():
                remove_page_of(self._path)
                self._page.unlink(missing_ok=True)

    def _begin(self) -> None:
        begins = self._folder / "begins"

        def prepare() -> None:
            with oxlite.Database(self._path) as db, db.listen("*") as listener:
                db.notify("a", f"{NEVER} again")
                with closing(oxlite.connect(self._path)) as connection:
                    connection.executescript(publishers.SCHEMA)
                begins.write_text(next(listener).position)

        pid = self._family.fork(prepare, may_end=True)
        self._await(lambda: pid not in self._family.running, "the database is not made")
        position = begins.read_text()
        self._page = signals_page_of(self._path)
        self._history = History(int(position.split("-")[1]))
        for patterns_of_a_host in HOSTS:
            first = len(self._chains)
            self._hosts.append(_Host([*range(first, first + len(patterns_of_a_host))]))
            for patterns in patterns_of_a_host:
                self._logs.append((self._folder / f"{len(self._chains)}.log", 0))
                self._chains.append(Chain(patterns, position))
        for log, _ in self._logs:
            log.touch()

    def _round(self) -> None:
        source = self._source
        self._told.orders[0] += 1  # go on
        for slot, _ in enumerate(_SLOTS):
            if slot not in self._publishers:
                self._fork_publisher(slot)
        self._look_after_hosts()
        now = time.monotonic()
        ends = now + source.choice(_ROUNDS_SECONDS)
        collects = now + _COLLECT_SECONDS
        event = now
        while (now := time.monotonic()) < ends:
            self._tend()
            if now >= event:
                self._disturb()
                event = now + source.expovariate(_EVENTS_IN_A_SECOND)
            if now >= collects:
                self._collect()
                self._look_after_hosts()
                collects = now + _COLLECT_SECONDS
            time.sleep(_LOOK_SECONDS)
        self._come_to_rest()
        self._all_has_arrived()
        self.tally.counts[ROUNDS] += 1

    def _calm_round(self) -> None:
        """Nobody is killed, and other programs alone notify, after nothing was written for long.

        Whoever watches the files has come to rest by then, and only their writes wake him.
        """
        for slot, kinds in enumerate(_SLOTS):
            if kinds is OURS:
                self._kill_publisher(slot)
            elif slot not in self._publishers:
                self._fork_publisher(slot)
        self._look_after_hosts()
        self._tend_for(_CALM_SECONDS)
        self._told.orders[0] += 1  # go on
        self._tend_for(self._source.choice(_ROUNDS_SECONDS[:4]))
        self._told.orders[0] += 1  # pause
        self._all_has_arrived()
        self.tally.counts[CALM] += 1

    def _tend_for(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._tend()
            time.sleep(_LOOK_SECONDS)

    def _tend(self) -> None:
        self._family.let_go_on()
        for pid in self._family.look():
            if self._maintainer is not None and pid == self._maintainer[0]:
                self.tally.counts[self._maintainer[1]] += 1
                self._maintainer = None
            for slot, publisher in tuple(self._publishers.items()):
                if publisher.pid == pid:
                    self.tally.counts[REFUSED] += 1
                    self._publisher_has_ended(self._publishers.pop(slot))
            for host in self._hosts:
                if host.pid == pid:
                    host.pid = None
                    self._life_has_ended(host)
                    self.tally.counts[ENDS] += 1

    def _disturb(self) -> None:
        """Something happens to somebody."""
        match self._source.randrange(20):
            case 0 | 1 | 2 | 3 | 4 | 5:
                self._kill_publisher(self._source.randrange(len(_SLOTS)))
            case 6 | 7 | 8:
                self._kill_host(self._source.choice(self._hosts))
            case 9 | 10:
                self._kill_host(self._watcher())
            case 11:
                self._stop(self._watcher())
            case 12 | 13:
                self._stop(self._source.choice(self._hosts))
            case 14 | 15:
                publisher = self._publishers.get(self._source.randrange(len(_SLOTS)))
                if publisher is not None:
                    self._stop_pid(publisher.pid)
            case 16:
                host = self._source.choice(self._hosts)
                if host.pid is not None:
                    self._family.end(host.pid)
            case _:
                self._maintain()
        for slot, _ in enumerate(_SLOTS):
            if slot not in self._publishers and self._source.random() < 0.7:
                self._fork_publisher(slot)

    def _come_to_rest(self) -> None:
        """Nobody notifies any more; somebody is killed at that moment, or just after."""
        source = self._source
        self._told.orders[0] += 1  # pause
        for slot in source.sample(range(len(_SLOTS)), len(_SLOTS)):
            if source.random() < 0.4:
                self._kill_publisher(slot)
        if source.random() < 0.5:
            self._kill_host(self._watcher())
        self._family.let_go_on(everybody=True)

    def _all_has_arrived(self) -> None:
        def is_at_rest() -> bool:
            return self._maintainer is None and all(
                self._told.is_paused[place] == self._told.orders[0]
                for publisher in self._publishers.values()
                for place in publisher.writers
            )

        self._await(is_at_rest, "somebody does not come to the end of a transaction", self._tend)
        self._await(self._collect, "the table cannot be read")
        for publisher in self._publishers.values():
            for place, writer in publisher.writers.items():
                self._history.check(writer, self._told.acknowledged[place])
        self._look_after_hosts()
        latest = self._history.latest
        moved = {
            place: (self._chains[place].number, time.monotonic())
            for host in self._hosts
            for place in host.chains
        }
        while True:
            self._tend()
            self._collect()
            self._look_after_hosts()
            if self._history.latest != latest:
                raise WrongError("somebody notifies while all pause")
            now = time.monotonic()
            waits = False
            for host in self._hosts:
                if host.pid is None or host.lazy_until:
                    continue
                for place in host.chains:
                    chain = self._chains[place]
                    row = chain.missing(self._history)
                    if row is None:
                        continue
                    waits = True
                    number, since = moved[place]
                    if chain.number != number:
                        moved[place] = (chain.number, now)
                    elif now > since + _DEADLINE_SECONDS:
                        raise WrongError(self._hang(host, chain, row))
            if not waits:
                break
            time.sleep(5 * _LOOK_SECONDS)
        self._sum_up()
        self._history.forget(min(chain.needed for chain in self._chains))

    def _hang(self, host: _Host, chain: Chain, row: Row) -> str:
        """Says what is known of a listener that hears nothing."""
        before = chain.number
        watcher = self._watcher()
        time.sleep(3 * _DEADLINE_SECONDS)
        self._collect()
        after = "nothing" if chain.number == before else f"up to {chain.number}"
        return (
            f"a listener to {chain.patterns} in process {host.pid} has heard nothing for"
            f" {_DEADLINE_SECONDS:g} s after {before}, and {row} is there; {after} in the"
            f" {3 * _DEADLINE_SECONDS:g} s that followed. Process"
            f" {watcher.pid if watcher else None} watches the files"
        )

    def _sum_up(self) -> None:
        tally = self.tally
        tally.notifications = self._history.latest
        tally.transactions = sum(self._history.counts.values())
        tally.delivered = sum(chain.delivered for chain in self._chains)
        tally.losses = sum(chain.losses for chain in self._chains)
        others = self._others
        tally.by_others = sum(self._history.counts.get(writer, 0) for writer in others)

    def _collect(self) -> bool:
        """Reads the logs, then the table, and compares them; whether it could be read."""
        logged = [self._lines(place) for place in range(len(self._chains))]
        rows = self._rows()
        if rows is None:
            return False
        self._history.add(rows)
        for place, (lines, end) in enumerate(logged):
            self._chains[place].follow(lines, self._history)
            self._logs[place] = (self._logs[place][0], end)
        return True

    def _lines(self, place: int) -> tuple[list[str], int]:
        """What has been logged since, in whole lines, and where that ends."""
        log, begins = self._logs[place]
        with log.open("rb") as file:
            file.seek(begins)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        return whole.decode().splitlines(), begins + len(whole)

    def _rows(self) -> list[Row] | None:
        """What the table has beyond the history, as another program reads it."""
        sql = "SELECT id, channel, payload FROM oxlite_notification WHERE id > ? ORDER BY id"
        try:
            with closing(sqlite3.connect(self._path, timeout=0.05)) as connection:
                return [Row(*row) for row in connection.execute(sql, (self._history.latest,))]
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                return None  # somebody who may be stopped has it alone
            raise

    def _check_integrity(self) -> None:
        with closing(sqlite3.connect(self._path, timeout=_LONG_SECONDS)) as connection:
            found = connection.execute("PRAGMA integrity_check(3)").fetchall()
        if found != [("ok",)]:
            raise WrongError(f"damaged: {found}")

    def _fork_publisher(self, slot: int) -> None:
        publish = self._source.choice(_SLOTS[slot])
        first = slot * WRITERS_AT_MOST
        writers = {}
        for place in range(first, first + writers_of(publish)):
            writers[place] = self._writers
            self._writers += 1
            self._told.is_paused[place] = 0
            self._told.is_writing[place] = 0
            self._told.acknowledged[place] = 0
        is_ours = _SLOTS[slot] is OURS
        if not is_ours:
            self._others.extend(writers.values())

        def work() -> None:
            publish(
                self._path,
                [
                    Writer(self._told, place, number, random.Random(f"{self._seed}.{number}"))
                    for place, number in writers.items()
                ],
            )

        pid = self._family.fork(work, may_end=publishers.may_end(publish))
        self._publishers[slot] = _Publisher(pid, is_ours, writers)

    def _kill_publisher(self, slot: int) -> None:
        publisher = self._publishers.pop(slot, None)
        if publisher is None:
            return
        self._family.kill(publisher.pid)
        counts = self.tally.counts
        counts[OURS_KILLED if publisher.is_ours else OTHERS_KILLED] += 1
        counts[WRITING_KILLED] += any(self._told.is_writing[place] for place in publisher.writers)
        self._publisher_has_ended(publisher)

    def _publisher_has_ended(self, publisher: _Publisher) -> None:
        told = {
            writer: self._told.acknowledged[place] for place, writer in publisher.writers.items()
        }
        self._await(self._collect, "the table cannot be read", self._tend)
        for writer, acknowledged in told.items():
            self._history.check(writer, acknowledged)

    def _fork_host(self, host: _Host) -> None:
        source = self._source
        number = self._hosts.index(host)
        is_lazy = source.random() < _AWAY
        host.lazy_until = self._history.latest + source.choice(_AWAY_FOR) if is_lazy else 0
        self.tally.counts[AWAYS] += is_lazy
        self._release[number] = 0
        lives = [
            Life(
                self._chains[place].patterns,
                self._logs[place][0],
                self._chains[place].position,
                is_fresh=place == _FRESH_CHAIN and not is_lazy and source.random() < 0.5,
                is_lazy=is_lazy,
                again_after=source.choice((0, 0, 0, 1, 30, 500)),
                timeout=source.choice((None, None, None, 0.01)),
            )
            for place in host.chains
        ]
        listen = source.choice(FACES)
        is_apart = source.random() < 0.5
        release = self._release[number : number + 1]
        host.pid = self._family.fork(partial(listen, self._path, lives, is_apart, release))

    def _look_after_hosts(self) -> None:
        """Whoever is gone comes back, unless he stays away; whoever took nothing begins to."""
        for number, host in enumerate(self._hosts):
            if host.pid is None and self._history.latest >= host.away_until:
                self._fork_host(host)
            elif host.lazy_until and self._history.latest >= host.lazy_until:
                host.lazy_until = 0
                self._release[number] = 1

    def _kill_host(self, host: _Host | None) -> None:
        if host is None or host.pid is None:
            return
        counts = self.tally.counts
        counts[WATCHERS_KILLED] += is_watcher(host.pid, self._page)
        self._family.kill(host.pid)
        host.pid = None
        counts[LISTENERS_KILLED] += 1
        self._life_has_ended(host)

    def _life_has_ended(self, host: _Host) -> None:
        self._await(self._collect, "the table cannot be read", self._family.let_go_on)
        for place in host.chains:
            log, end = self._logs[place]
            # It may have been killed in the midst of a line.
            with log.open("rb+") as file:
                file.truncate(end)
            self._chains[place].stay()
        if self._source.random() < _AWAY:
            host.away_until = self._history.latest + self._source.choice(_AWAY_FOR)
            self.tally.counts[AWAYS] += 1
        if self._source.random() < 0.5:
            self._look_after_hosts()

    def _watcher(self) -> _Host | None:
        for host in self._hosts:
            if host.pid is not None and is_watcher(host.pid, self._page):
                return host
        return None

    def _stop(self, host: _Host | None) -> None:
        if host is not None and host.pid is not None:
            is_watching = is_watcher(host.pid, self._page)
            self.tally.counts[WATCHERS_STOPPED] += self._stop_pid(host.pid) and is_watching

    def _stop_pid(self, pid: int) -> bool:
        seconds = self._source.random() * _LONGEST_STOP_SECONDS
        is_stopped = self._family.stop(pid, seconds)
        self.tally.counts[STOPS] += is_stopped
        return is_stopped

    def _maintain(self) -> None:
        """Another program makes a checkpoint, or rebuilds the database; or is killed meanwhile."""
        if self._maintainer is not None:
            self._family.kill(self._maintainer[0])
            self.tally.counts[MAINTAINERS_KILLED] += 1
            self._maintainer = None
            return
        what = MAINTENANCE[self._source.random() < 0.2]
        sql = "VACUUM" if what == VACUUMS else "PRAGMA wal_checkpoint(TRUNCATE)"

        def work() -> None:
            with closing(sqlite3.connect(self._path, timeout=publishers.TIMEOUT_SECONDS)) as other:
                other.execute(sql)

        self._maintainer = (self._family.fork(work, may_end=True), what)

    def _finish(self) -> None:
        """All end as they should, and leave nothing."""
        for host in self._hosts:
            host.away_until = host.lazy_until = 0
        for number in range(len(self._hosts)):
            self._release[number] = 1
        self._all_has_arrived()
        self._told.orders[0] = publishers.END
        for pid in tuple(self._family.running):
            self._family.running[pid] = True
        for host in self._hosts:
            if host.pid is not None:
                self._family.end(host.pid)
        self._await(lambda: not self._family.running, "somebody does not end", self._family.look)
        self._await(self._collect, "the table cannot be read")
        for chain in self._chains:
            if (row := chain.missing(self._history)) is not None:
                raise WrongError(f"{chain.patterns}: {row} has not arrived")
        for publisher in self._publishers.values():
            for place, writer in publisher.writers.items():
                self._history.check(writer, self._told.acknowledged[place])
        self._sum_up()
        self._check_integrity()

        # Whoever comes last takes the page away that the killed ones have left, by a thread of its
        # own that ends soon after the database is closed.
        pid = self._family.fork(self._come_and_go, may_end=True)
        self._await(lambda: pid not in self._family.running, "nobody can listen", self._family.look)
        if self._page.exists():
            raise WrongError(f"{self._page} was left by the last one")

    def _come_and_go(self) -> None:
        with oxlite.Database(self._path) as db, db.listen("*") as listener:
            db.notify("a", f"{NEVER} more")
            next(listener)
        del db, listener
        ends = time.monotonic() + _LONG_SECONDS
        while self._page.exists() and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)

    def _await(
        self,
        look: Callable[[], object],
        complaint: str,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        ends = time.monotonic() + _LONG_SECONDS
        while not look():
            if time.monotonic() > ends:
                raise WrongError(f"{complaint} for {_LONG_SECONDS:g} s")
            (meanwhile or self._tend)()
            time.sleep(_LOOK_SECONDS)
