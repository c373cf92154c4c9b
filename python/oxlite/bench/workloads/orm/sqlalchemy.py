"""The operations of ``orm`` in SQLAlchemy's ORM, as its documentation writes them.

Each object by itself is a commit of the session after it; in one transaction it is a flush.
Before each pass over rows that were read already, the session forgets them: else it would
read nothing.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from sqlalchemy import Engine, delete, func, select, update
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    foreign,
    joinedload,
    mapped_column,
    relationship,
    selectinload,
)

from oxlite.bench.workloads.orm.mapper import Prepare, Work
from oxlite.bench.workloads.orm.operations import light_threads

DOCUMENT = {"pumpkin": 1, "candy": 1}


class Base(DeclarativeBase):
    """Of all tables."""


class Party(Base):
    """A party."""

    __tablename__ = "parties"

    id: Mapped[int] = mapped_column(primary_key=True)
    theme: Mapped[str]
    people: Mapped[list["Person"]] = relationship(
        primaryjoin=lambda: Party.id == foreign(Person.party_id),
        back_populates="party",
        passive_deletes="all",
    )
    other_people: Mapped[list["Person"]] = relationship(
        primaryjoin=lambda: Party.id == foreign(Person.other_party_id),
        overlaps="people",
        passive_deletes="all",
    )


class Person(Base):
    """A person, who goes to one party and perhaps to another."""

    __tablename__ = "people"

    id: Mapped[int] = mapped_column(primary_key=True)
    party_id: Mapped[int | None]
    other_party_id: Mapped[int | None]
    name: Mapped[str]
    address: Mapped[str]
    party: Mapped[Party | None] = relationship(
        primaryjoin=lambda: Party.id == foreign(Person.party_id), back_populates="people"
    )


class JsonParty(Base):
    """A party that is one document."""

    __tablename__ = "json_parties"

    id: Mapped[int] = mapped_column(primary_key=True)
    stuff: Mapped[str]


class SqlAlchemy:
    """See :class:`~oxlite.bench.workloads.orm.mapper.Mapper`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._in_transaction = False
        self._session = Session(engine, expire_on_commit=False)
        Base.metadata.create_all(engine)
        self._operations: dict[str, Prepare] = {
            "model_object_creation": self._creation,
            "model_object_select": self._select,
            "model_object_select_by_pk": self._select_by_pk,
            "model_object_select_by_attr": self._select_by_attr,
            "model_object_select_and_save": self._select_and_save,
            "model_object_destruction": self._destruction,
            "model_object_and_associated_object_creation": self._associated_creation,
            "model_object_and_associated_object_destruction": self._associated_destruction,
            "eager_loading_query_per_association_with_1_to_1_records": lambda n: self._eager_to_one(
                n, selectinload(Person.party)
            ),
            "eager_loading_single_query_with_1_to_1_records": lambda n: self._eager_to_one(
                n, joinedload(Person.party)
            ),
            "eager_loading_query_per_association_with_1_to_n_records": lambda n: (
                self._eager_to_many(n, selectinload(Party.people))
            ),
            "eager_loading_single_query_with_1_to_n_records": lambda n: self._eager_to_many(
                n, joinedload(Party.people)
            ),
            "eager_loading_query_per_association_with_1_to_n_to_n_records": lambda n: (
                self._eager_to_both(n, 9, selectinload)
            ),
            "eager_loading_single_query_with_1_to_n_to_n_records": lambda n: self._eager_to_both(
                n, 1, joinedload
            ),
            "lazy_loading_with_1_to_1_records": self._lazy_to_one,
            "lazy_loading_with_1_to_n_records": self._lazy_to_many,
            "light_threading": lambda n: self._threads(n, light_threads(n)),
            "heavy_threading": lambda n: self._threads(n, n),
            "model_object_select_json_nested": self._select_json,
            "model_object_update_json_nested": self._update_json_nested,
            "model_object_update_json": self._update_json,
        }

    def prepare(self, name: str, n: int) -> Work:
        """See the protocol."""
        self._session.rollback()
        self._session.expunge_all()
        for model in (Person, Party, JsonParty):
            self._session.execute(delete(model))
        self._session.commit()
        work = self._operations[name](n)
        self._session.commit()
        self._session.expunge_all()
        return work

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See the protocol."""
        self._in_transaction = True
        try:
            yield
            self._session.commit()
        finally:
            self._in_transaction = False

    def versions(self) -> dict[str, str]:
        """See the protocol."""
        return {"sqlalchemy": metadata.version("sqlalchemy")}

    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """See the protocol."""
        return self._session.connection().connection.driver_connection

    def close(self) -> None:
        """See the protocol."""
        self._session.close()
        self._engine.dispose()

    def _done(self) -> None:
        """One object is done with."""
        if self._in_transaction:
            self._session.flush()
        else:
            self._session.commit()

    def _anew(self) -> None:
        """What comes is read, not remembered."""
        if not self._in_transaction:
            self._session.commit()
        self._session.expunge_all()

    def _parties(self, count: int) -> list[Party]:
        parties = [Party(theme=f"theme {number}") for number in range(count)]
        self._session.add_all(parties)
        self._session.flush()
        return parties

    def _pairs(self, count: int) -> None:
        for number, party in enumerate(self._parties(count)):
            self._session.add(Person(party_id=party.id, name=f"name {number}", address="here"))

    def _crowds(self, n: int, *, others: bool = False) -> None:
        parties = self._parties(n)
        for party in parties:
            for number in range(n):
                person = {"name": f"name {number}", "address": "here"}
                self._session.add(Person(party_id=party.id, **person))
                if others:
                    self._session.add(Person(other_party_id=party.id, **person))

    def _documents(self, count: int) -> list[int]:
        documents = [JsonParty(stuff=json.dumps(DOCUMENT)) for _ in range(count)]
        self._session.add_all(documents)
        self._session.flush()
        return [document.id for document in documents]

    def _creation(self, n: int) -> Work:
        def work() -> int:
            for number in range(50 * n):
                self._session.add(Party(theme=f"theme {number}"))
                self._done()
            return 50 * n

        return work

    def _select(self, n: int) -> Work:
        self._parties(100 * n)

        def work() -> int:
            count = 0
            for _ in range(n):
                count += len(self._session.scalars(select(Party)).all())
                self._anew()
            return count

        return work

    def _select_by_pk(self, n: int) -> Work:
        ids = [party.id for party in self._parties(10 * n)]

        def work() -> int:
            count = 0
            for _ in range(n):
                for identity in ids:
                    count += self._session.get(Party, identity) is not None
                self._anew()
            return count

        return work

    def _select_by_attr(self, n: int) -> Work:
        themes = [party.theme for party in self._parties(10 * n)]

        def work() -> int:
            count = 0
            for _ in range(n):
                for theme in themes:
                    found = self._session.scalars(select(Party).where(Party.theme == theme))
                    count += found.first() is not None
                self._anew()
            return count

        return work

    def _select_and_save(self, n: int) -> Work:
        self._parties(50 * n)

        def work() -> int:
            parties = self._session.scalars(select(Party)).all()
            for party in parties:
                party.theme += "1"
                self._done()
            return len(parties)

        return work

    def _destruction(self, n: int) -> Work:
        self._parties(100 * n)

        def work() -> int:
            parties = self._session.scalars(select(Party)).all()
            for party in parties:
                self._session.delete(party)
                self._done()
            return len(parties)

        return work

    def _associated_creation(self, n: int) -> Work:
        def work() -> int:
            for number in range(20 * n):
                party = Party(theme=f"theme {number}")
                party.people.append(Person(name=f"name {number}", address="here"))
                self._session.add(party)
                self._done()
            return 40 * n

        return work

    def _associated_destruction(self, n: int) -> Work:
        self._pairs(25 * n)

        def work() -> int:
            count = 0
            for person in self._session.scalars(select(Person)).all():
                party = person.party
                self._session.delete(person)
                self._done()
                self._session.delete(party)
                self._done()
                count += 2
            return count

        return work

    def _eager_to_one(self, n: int, option: Any) -> Work:  # noqa: ANN401 - a loader option
        self._pairs(20 * n)

        def work() -> int:
            count = 0
            for _ in range(22):
                for person in self._session.scalars(select(Person).options(option)):
                    count += person.party is not None
                self._anew()
            return count

        return work

    def _eager_to_many(self, n: int, option: Any) -> Work:  # noqa: ANN401 - a loader option
        self._crowds(n)

        def work() -> int:
            count = 0
            for _ in range(22):
                for party in self._session.scalars(select(Party).options(option)).unique():
                    count += len(party.people)
                self._anew()
            return count

        return work

    def _eager_to_both(self, n: int, times: int, load: Callable[..., Any]) -> Work:
        self._crowds(n, others=True)

        def work() -> int:
            count = 0
            query = select(Party).options(load(Party.people), load(Party.other_people))
            for _ in range(times):
                for party in self._session.scalars(query).unique():
                    count += len(party.people) + len(party.other_people)
                self._anew()
            return count

        return work

    def _lazy_to_one(self, n: int) -> Work:
        self._pairs(20 * n)

        def work() -> int:
            people = self._session.scalars(select(Person)).all()
            return sum(person.party is not None for person in people)

        return work

    def _lazy_to_many(self, n: int) -> Work:
        self._crowds(n)

        def work() -> int:
            count = 0
            for _ in range(16):
                for party in self._session.scalars(select(Party)).all():
                    count += len(party.people)
                self._anew()
            return count

        return work

    def _threads(self, n: int, threads: int) -> Work:
        barrier = threading.Barrier(threads)
        counts: list[int] = []
        errors: list[BaseException] = []

        def live(thread: int) -> None:
            count = 0
            try:
                barrier.wait()
                for number in range(n):
                    with Session(self._engine) as session:
                        session.add(Party(theme=f"{thread} {number}"))
                        session.commit()
                        count += 1
                for _ in range(n):
                    with Session(self._engine) as session:
                        own = Party.theme.like(f"{thread} %")
                        party = session.scalars(select(Party).where(own).limit(1)).one()
                        party.theme += "1"
                        session.commit()
                        session.delete(party)
                        session.commit()
                        count += 3
            except BaseException as error:
                errors.append(error)
            counts.append(count)

        def work() -> int:
            all_threads = [threading.Thread(target=live, args=(one,)) for one in range(threads)]
            for thread in all_threads:
                thread.start()
            for thread in all_threads:
                thread.join()
            if errors:
                raise errors[0]
            return sum(counts)

        return work

    def _select_json(self, n: int) -> Work:
        self._documents(10 * n)

        def work() -> int:
            pumpkin = func.json_extract(JsonParty.stuff, "$.pumpkin")
            query = select(JsonParty).where(pumpkin == 1).limit(1)
            count = 0
            for _ in range(10 * n * n):
                count += self._session.scalars(query).first() is not None
                self._session.expunge_all()
            self._done()
            return count

        return work

    def _update_json_nested(self, n: int) -> Work:
        ids = self._documents(10 * n)

        def work() -> int:
            count = 0
            for number in range(n):
                changed = func.json_set(JsonParty.stuff, "$.pumpkin", number)
                for identity in ids:
                    statement = update(JsonParty).where(JsonParty.id == identity)
                    self._session.execute(statement.values(stuff=changed))
                    self._done()
                    count += 1
            return count

        return work

    def _update_json(self, n: int) -> Work:
        ids = self._documents(10 * n)

        def work() -> int:
            count = 0
            for number in range(n):
                for identity in ids:
                    document = self._session.get_one(JsonParty, identity)
                    document.stuff = json.dumps({"pumpkin": number + 2, "candy": identity})
                    self._done()
                    count += 1
                self._anew()
            return count

        return work
