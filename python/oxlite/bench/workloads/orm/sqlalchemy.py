"""The operations of ``orm`` in SQLAlchemy's ORM, as its documentation writes them.

Each object by itself is a commit of the session after it; in one transaction it is a flush.
Before each pass over rows that were read already, the session forgets them: else it would
read nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    ColumnElement,
    Engine,
    cast,
    create_engine,
    delete,
    event,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, array
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

from oxlite.bench.drivers.oxlite import PROFILES
from oxlite.bench.drivers.postgresql import USER
from oxlite.bench.scenarios import pragmas
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import (
    DOCUMENT,
    TIMEOUT_SECONDS,
    Content,
    Prepare,
    Work,
)
from oxlite.bench.workloads.orm.operations import Scale
from oxlite.bench.workloads.orm.threads import run_threads


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
    stuff: Mapped[dict[str, int]] = mapped_column(JSON().with_variant(JSONB, "postgresql"))


def engine(scenario: Scenario, path: Path) -> Engine:
    """An engine for the database at ``path``, with the settings of ``scenario``."""
    if scenario.driver == "postgresql":
        host = {"host": str(path.parent)}
        return create_engine(
            URL.create("postgresql+psycopg", username=USER, database=path.name, query=host)
        )
    if scenario.driver == "oxlite":
        profile = PROFILES.get(scenario.pragmas or "", "stock")
        options = {"profile": profile, "timeout": TIMEOUT_SECONDS}
        return create_engine(f"sqlite+oxlite:///{path}", connect_args=options)
    made = create_engine(f"sqlite:///{path}", connect_args={"timeout": TIMEOUT_SECONDS})

    def set_up(connection: Any, _record: object) -> None:  # noqa: ANN401
        pragmas.apply(connection, scenario.pragmas or "stock")

    event.listen(made, "connect", set_up)
    return made


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
            "eager_loading_query_per_association_with_1_to_1_records": lambda scale: (
                self._eager_to_one(scale, selectinload(Person.party))
            ),
            "eager_loading_single_query_with_1_to_1_records": lambda scale: self._eager_to_one(
                scale, joinedload(Person.party)
            ),
            "eager_loading_query_per_association_with_1_to_n_records": lambda scale: (
                self._eager_to_many(scale, selectinload(Party.people))
            ),
            "eager_loading_single_query_with_1_to_n_records": lambda scale: self._eager_to_many(
                scale, joinedload(Party.people)
            ),
            "eager_loading_query_per_association_with_1_to_n_to_n_records": lambda scale: (
                self._eager_to_both(scale, 9, selectinload)
            ),
            "eager_loading_single_query_with_1_to_n_to_n_records": lambda scale: (
                self._eager_to_both(scale, 1, joinedload)
            ),
            "lazy_loading_with_1_to_1_records": self._lazy_to_one,
            "lazy_loading_with_1_to_n_records": self._lazy_to_many,
            "light_threading": lambda scale: self._threads(scale, scale.light_threads),
            "heavy_threading": lambda scale: self._threads(scale, scale.n),
            "model_object_select_json_nested": self._select_json,
            "model_object_update_json_nested": self._update_json_nested,
            "model_object_update_json": self._update_json,
        }

    def prepare(self, name: str, scale: Scale) -> Work:
        """See the protocol."""
        self._session.rollback()
        self._session.expunge_all()
        for model in (Person, Party, JsonParty):
            self._session.execute(delete(model))
        self._session.commit()
        work = self._operations[name](scale)
        self._session.commit()
        self._session.expunge_all()
        return work

    def contents(self) -> list[Content]:
        """See the protocol."""
        self._session.rollback()
        people = select(Person.name, Person.address, Party.theme).join(
            Party, Party.id == func.coalesce(Person.party_id, Person.other_party_id)
        )
        documents = self._session.scalars(select(JsonParty.stuff))
        found: list[Content] = [
            *((theme,) for theme in self._session.scalars(select(Party.theme))),
            *(tuple(row) for row in self._session.execute(people)),
            *((document["pumpkin"], document["candy"]) for document in documents),
        ]
        self._session.rollback()
        return found

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
        documents = [JsonParty(stuff=DOCUMENT) for _ in range(count)]
        self._session.add_all(documents)
        self._session.flush()
        return [document.id for document in documents]

    def _creation(self, scale: Scale) -> Work:
        def work() -> int:
            for number in range(50 * scale.n):
                self._session.add(Party(theme=f"theme {number}"))
                self._done()
            return 50 * scale.n

        return work

    def _select(self, scale: Scale) -> Work:
        self._parties(100 * scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(scale.n)):
                query = select(Party)
                if scale.faithful:
                    continue
                count += len(self._session.scalars(query).all())
                self._anew()
            return count

        return work

    def _select_by_pk(self, scale: Scale) -> Work:
        ids = [party.id for party in self._parties(10 * scale.n)]

        def work() -> int:
            count = 0
            for _ in range(scale.times(scale.n)):
                for identity in ids:
                    count += self._session.get(Party, identity) is not None
                self._anew()
            return count

        return work

    def _select_by_attr(self, scale: Scale) -> Work:
        themes = [party.theme for party in self._parties(10 * scale.n)]

        def work() -> int:
            count = 0
            for _ in range(scale.times(scale.n)):
                for theme in themes:
                    found = self._session.scalars(select(Party).where(Party.theme == theme))
                    count += found.first() is not None
                self._anew()
            return count

        return work

    def _select_and_save(self, scale: Scale) -> Work:
        self._parties(50 * scale.n)

        def work() -> int:
            parties = self._session.scalars(select(Party)).all()
            for party in parties:
                party.theme += "1"
                self._done()
            return len(parties)

        return work

    def _destruction(self, scale: Scale) -> Work:
        self._parties(100 * scale.n)

        def work() -> int:
            parties = self._session.scalars(select(Party)).all()
            for party in parties:
                self._session.delete(party)
                self._done()
            return len(parties)

        return work

    def _associated_creation(self, scale: Scale) -> Work:
        def work() -> int:
            for number in range(20 * scale.n):
                party = Party(theme=f"theme {number}")
                party.people.append(Person(name=f"name {number}", address="here"))
                self._session.add(party)
                self._done()
            return 40 * scale.n

        return work

    def _associated_destruction(self, scale: Scale) -> Work:
        self._pairs(25 * scale.n)

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

    def _eager_to_one(self, scale: Scale, option: Any) -> Work:  # noqa: ANN401 - a loader option
        self._pairs(20 * scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(22)):
                query = select(Person).options(option)
                if scale.faithful:
                    continue
                for person in self._session.scalars(query):
                    count += person.party is not None
                self._anew()
            return count

        return work

    def _eager_to_many(self, scale: Scale, option: Any) -> Work:  # noqa: ANN401 - a loader option
        self._crowds(scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(22)):
                query = select(Party).options(option)
                if scale.faithful:
                    continue
                for party in self._session.scalars(query).unique():
                    count += len(party.people)
                self._anew()
            return count

        return work

    def _eager_to_both(self, scale: Scale, times: int, load: Callable[..., Any]) -> Work:
        self._crowds(scale.n, others=True)

        def work() -> int:
            count = 0
            for _ in range(scale.times(times)):
                query = select(Party).options(load(Party.people), load(Party.other_people))
                if scale.faithful:
                    continue
                for party in self._session.scalars(query).unique():
                    count += len(party.people) + len(party.other_people)
                self._anew()
            return count

        return work

    def _lazy_to_one(self, scale: Scale) -> Work:
        self._pairs(20 * scale.n)

        def work() -> int:
            people = self._session.scalars(select(Person)).all()
            return sum(person.party is not None for person in people)

        return work

    def _lazy_to_many(self, scale: Scale) -> Work:
        self._crowds(scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(16)):
                for party in self._session.scalars(select(Party)).all():
                    count += len(party.people)
                self._anew()
            return count

        return work

    def _threads(self, scale: Scale, threads: int) -> Work:
        def live(thread: int) -> int:
            count = 0
            for number in range(scale.n):
                with Session(self._engine) as session:
                    session.add(Party(theme=f"{thread} {number}"))
                    session.commit()
                    count += 1
            for _ in range(scale.n):
                with Session(self._engine) as session:
                    own = Party.theme.like(f"{thread} %")
                    party = session.scalars(select(Party).where(own).limit(1)).one()
                    party.theme += "1"
                    session.commit()
                    session.delete(party)
                    session.commit()
                    count += 3
            return count

        return lambda: run_threads(threads, live, one_by_one=scale.faithful)

    def _select_json(self, scale: Scale) -> Work:
        self._documents(10 * scale.n)

        def work() -> int:
            query = select(JsonParty).where(JsonParty.stuff["pumpkin"].as_integer() == 1).limit(1)
            count = 0
            for _ in range(10 * scale.n * scale.times(scale.n)):
                count += self._session.scalars(query).first() is not None
                self._session.expunge_all()
            self._done()
            return count

        return work

    def _update_json_nested(self, scale: Scale) -> Work:
        ids = self._documents(10 * scale.n)

        def work() -> int:
            count = 0
            for number in range(scale.times(scale.n)):
                changed = self._with_pumpkin(number)
                for identity in ids:
                    statement = update(JsonParty).where(JsonParty.id == identity)
                    self._session.execute(statement.values(stuff=changed))
                    self._done()
                    count += 1
            return count

        return work

    def _with_pumpkin(self, number: int) -> ColumnElement[Any]:
        """The document with another number in it, as the database makes it."""
        if self._engine.dialect.name == "postgresql":
            return func.jsonb_set(JsonParty.stuff, array(["pumpkin"]), cast(number, JSONB))
        return func.json_set(JsonParty.stuff, "$.pumpkin", number)

    def _update_json(self, scale: Scale) -> Work:
        ids = self._documents(10 * scale.n)

        def work() -> int:
            count = 0
            for number in range(scale.times(scale.n)):
                for candy, identity in enumerate(ids):
                    document = self._session.get_one(JsonParty, identity)
                    document.stuff = {"pumpkin": number + 2, "candy": candy}
                    self._done()
                    count += 1
                self._anew()
            return count

        return work
