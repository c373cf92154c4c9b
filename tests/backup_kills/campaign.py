"""The cycles: writers under load, somebody who backs up, SIGKILL, and a restore of all there is.

Invariants that are looked at:
- What has the name of a backup restores, and is a prefix: of each writer all numbers up to one.
- It has what was acknowledged before it began.
- What was said to be made is there.
- Who is killed while he restores leaves the one or the other.
"""

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.backup_kills import ledger
from tests.backup_kills.processes import Process, backs_up, restores, writes
from tests.kill_campaigns import WrongError

from oxlite import operations

__all__ = ["Campaign"]

_CYCLE_SECONDS = (0.02, 0.2)
_RESTORE_SECONDS = 0.06
_ANEW_AFTER_CYCLES = 8
"""The database is begun anew, so that it stays small enough for many cycles."""


class Campaign:
    """See the module.

    Attributes:
        tally: How many of what.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._choice = random.Random(seed)
        self.tally: Counter[str] = Counter()
        self._looked_at: set[Path] = set()

    @property
    def kills(self) -> int:
        """How many were killed."""
        return sum(count for what, count in self.tally.items() if what.startswith("killed"))

    def run(self, cycles: int, progress: Callable[[Counter[str]], None]) -> None:
        """Do so many.

        Raises:
            WrongError: Something is not as it should be.
        """
        for cycle in range(cycles):
            if cycle % _ANEW_AFTER_CYCLES == 0:
                shutil.rmtree(self._folder, ignore_errors=True)
                (self._folder / "backups").mkdir(parents=True)
                self._looked_at.clear()
                ledger.create(self._database)
            self._cycle()
            self.tally["cycles"] += 1
            progress(self.tally)

    @property
    def _database(self) -> Path:
        return self._folder / "app.db"

    def _cycle(self) -> None:
        before = ledger.counts(self._database)
        directory = self._folder / "backups"
        writers = [Process(writes(self._database, one)) for one in range(ledger.WRITERS)]
        maker = Process(backs_up(self._database, directory, self._choice.getrandbits(32)))
        least: dict[str, list[int]] = {}
        acknowledged, earlier, at_least = list(before), list(before), list(before)
        ends = time.monotonic() + self._choice.uniform(*_CYCLE_SECONDS)

        def hear() -> None:
            nonlocal at_least, earlier
            # It may have begun before the writers were heard the last time.
            for line in maker.said():
                if line == "begins":
                    at_least = earlier
                else:
                    least[line] = at_least
            earlier = list(acknowledged)
            for one, writer in enumerate(writers):
                for line in writer.said():
                    acknowledged[one] = int(line)

        while time.monotonic() < ends:
            hear()
            time.sleep(0.002)
        everybody = [*writers, maker]
        self._choice.shuffle(everybody)
        for one in everybody:
            if os.WIFEXITED(status := one.kill()):
                raise WrongError(f"somebody has ended by himself: {status}")
            self.tally["killed: who backs up" if one is maker else "killed: writers"] += 1
        hear()
        for one in everybody:
            one.close()
        self._look(least, before, acknowledged)
        if self._choice.random() < 0.3:
            self._restore()
        for prune in (operations.prune, operations.prune_snapshots):
            prune(directory if prune is operations.prune else self._database, keep=2)

    def _look(
        self, least: dict[str, list[int]], before: list[int], acknowledged: list[int]
    ) -> None:
        """Restore each backup, and compare it with what was acknowledged."""
        found = ledger.counts(self._database)
        if any(one < other for one, other in zip(found, acknowledged, strict=True)):
            raise WrongError(f"acknowledged {acknowledged}, found {found}")
        self.tally["transactions acknowledged"] += sum(acknowledged) - sum(before)
        made = self._backups()
        if missing := least.keys() - {str(one.path) for one in made}:
            raise WrongError(f"said to be made, and not there: {missing}")
        for one in made:
            if one.path in self._looked_at:
                continue
            target = self._folder / "restored.db"
            operations.restore(one.path, target)
            has = ledger.counts(target)
            bound = least.get(str(one.path), [0] * ledger.WRITERS)
            if any(
                count < low or count > high
                for count, low, high in zip(has, bound, found, strict=True)
            ):
                raise WrongError(f"{one.path} has {has}: from {bound} to {found} were possible")
            self._looked_at.add(one.path)
            self.tally["restored: backups and snapshots"] += 1
            for path in self._folder.glob("restored.db*"):
                path.unlink()

    def _backups(self) -> list[operations.Backup]:
        """All; and no file beside them that one could take for one."""
        directories = [self._folder / "backups", self._folder / "app.db.snapshots"]
        found = []
        for directory in directories:
            if not directory.is_dir():
                continue
            made = operations.backups_in(directory)
            names = {one.path.name for one in made}
            for path in directory.iterdir():
                is_named = not path.name.startswith(".") and path.suffix != ".json"
                if is_named and path.name not in names:
                    raise WrongError(f"{path} has a name and no manifest")
            found += made
        return found

    def _restore(self) -> None:
        """Have somebody restore in place, who is killed or not."""
        if not (made := self._backups()):
            return
        one = self._choice.choice(made)
        before = ledger.counts(self._database)
        target = self._folder / "restored.db"
        operations.restore(one.path, target)
        then = ledger.counts(target)
        for path in self._folder.glob("restored.db*"):
            path.unlink()
        process = Process(restores(one.path, self._database))
        time.sleep(self._choice.uniform(0, _RESTORE_SECONDS))
        with suppress(ProcessLookupError):
            os.kill(process.pid, 9)
        status = process.wait()
        process.close()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise WrongError("a restore has failed by itself")
        self.tally[
            "restored in place" if os.WIFEXITED(status) else "killed: who restores in place"
        ] += 1
        found = ledger.counts(self._database)
        if found != then and (found != before or os.WIFEXITED(status)):
            raise WrongError(f"neither what was there, {before}, nor the backup, {then}: {found}")
        for path in self._folder.glob("app.db.before-*"):
            if ledger.counts(path) != before and found == then:
                raise WrongError(f"{path} is not what was there")
            for each in self._folder.glob(f"{path.name}*"):
                each.unlink()
