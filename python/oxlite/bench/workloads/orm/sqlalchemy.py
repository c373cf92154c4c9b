"""The operations of ``orm`` in SQLAlchemy's ORM, as its documentation writes them.

Each object by itself is a commit of the session after it; in one transaction it is a flush.
Before each pass over rows that were read already, the session forgets them: else it would
read nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    ColumnElement,
    Engine,
    Select,
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

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.oxlite import PROFILES
from oxlite.bench.drivers.postgresql import USER
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import TIMEOUT_SECONDS, Content, Given, Mapper


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
        profile = PROFILES.get(scenario.get("pragmas", ""), "stock")
        options = {"profile": profile, "timeout": TIMEOUT_SECONDS}
        return create_engine(f"sqlite+oxlite:///{path}", connect_args=options)
    made = create_engine(f"sqlite:///{path}", connect_args={"timeout": TIMEOUT_SECONDS})

    def set_up(connection: Any, _record: object) -> None:  # noqa: ANN401
        pragmas.apply(connection, scenario.get("pragmas", "stock"))

    event.listen(made, "connect", set_up)
    return made


class SqlAlchemy(Mapper):
    """See the base class."""

    party = Party
    person = Person
    document = JsonParty

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._in_transaction = False
        self._session = Session(engine, expire_on_commit=False)
        Base.metadata.create_all(engine)
        self.reads = {
            "model_object_select": (
                lambda: select(Party),
                lambda query: len(self._session.scalars(query).all()),
            )
        }
        for name, load in (
            ("eager_loading_query_per_association", selectinload),
            ("eager_loading_single_query", joinedload),
        ):
            self._read_eagerly(name, load)

    def _read_eagerly(self, name: str, load: Callable[..., Any]) -> None:
        """Add the operations ``name``, which load relations by the option ``load``."""
        party, people = load(Person.party), load(Party.people)
        self.reads |= {
            f"{name}_with_1_to_1_records": (
                lambda: select(Person).options(party),
                lambda query: sum(one.party is not None for one in self._session.scalars(query)),
            ),
            f"{name}_with_1_to_n_records": (
                lambda: select(Party).options(people),
                lambda query: sum(len(one.people) for one in self._unique(query)),
            ),
            f"{name}_with_1_to_n_to_n_records": (
                lambda: select(Party).options(load(Party.people), load(Party.other_people)),
                lambda query: sum(
                    len(one.people) + len(one.other_people) for one in self._unique(query)
                ),
            ),
        }

    def _unique(self, query: Select[Any]) -> Iterable[Any]:
        return self._session.scalars(query).unique()

    def empty(self) -> None:
        """See the base class."""
        self._session.rollback()
        self._session.expunge_all()
        for model in (Person, Party, JsonParty):
            self._session.execute(delete(model))
        self._session.commit()

    def add(self, objects: Iterable[Any]) -> list[Any]:
        """See the base class."""
        made = list(objects)
        self._session.add_all(made)
        self._session.flush()
        return made

    def forget(self) -> None:
        """See the base class."""
        if not self._in_transaction:
            self._session.commit()
        self._session.expunge_all()

    def contents(self) -> list[Content]:
        """See the base class."""
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
        """See the base class."""
        self._in_transaction = True
        try:
            yield
            self._session.commit()
        finally:
            self._in_transaction = False

    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """See the base class."""
        return self._session.connection().connection.driver_connection

    def close(self) -> None:
        """See the base class."""
        self._session.close()
        self._engine.dispose()

    def _done(self) -> None:
        """One object is done with."""
        if self._in_transaction:
            self._session.flush()
        else:
            self._session.commit()

    def _model_object_creation(self, given: Given, _passes: int) -> int:
        for number in given:
            self._session.add(Party(theme=f"theme {number}"))
            self._done()
        return len(given)

    def _model_object_select_by_pk(self, given: Given, passes: int) -> int:
        count = 0
        for _ in range(passes):
            for identity in given:
                count += self._session.get(Party, identity) is not None
            self.forget()
        return count

    def _model_object_select_by_attr(self, given: Given, passes: int) -> int:
        count = 0
        for _ in range(passes):
            for theme in given:
                found = self._session.scalars(select(Party).where(Party.theme == theme))
                count += found.first() is not None
            self.forget()
        return count

    def _model_object_select_and_save(self, _given: Given, _passes: int) -> int:
        parties = self._session.scalars(select(Party)).all()
        for party in parties:
            party.theme += "1"
            self._done()
        return len(parties)

    def _model_object_destruction(self, _given: Given, _passes: int) -> int:
        parties = self._session.scalars(select(Party)).all()
        for party in parties:
            self._session.delete(party)
            self._done()
        return len(parties)

    def _model_object_and_associated_object_creation(self, given: Given, _passes: int) -> int:
        for number in given:
            party = Party(theme=f"theme {number}")
            party.people.append(Person(name=f"name {number}", address="here"))
            self._session.add(party)
            self._done()
        return 2 * len(given)

    def _model_object_and_associated_object_destruction(self, _given: Given, _passes: int) -> int:
        count = 0
        for person in self._session.scalars(select(Person)).all():
            party = person.party
            self._session.delete(person)
            self._done()
            self._session.delete(party)
            self._done()
            count += 2
        return count

    def _lazy_loading_with_1_to_1_records(self, _given: Given, _passes: int) -> int:
        people = self._session.scalars(select(Person)).all()
        return sum(person.party is not None for person in people)

    def _lazy_loading_with_1_to_n_records(self, _given: Given, passes: int) -> int:
        count = 0
        for _ in range(passes):
            for party in self._session.scalars(select(Party)).all():
                count += len(party.people)
            self.forget()
        return count

    def live(self, n: int, thread: int) -> int:
        """See the base class."""
        count = 0
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
        return count

    def _model_object_select_json_nested(self, given: Given, passes: int) -> int:
        query = select(JsonParty).where(JsonParty.stuff["pumpkin"].as_integer() == 1).limit(1)
        count = 0
        for _ in range(len(given) * passes):
            count += self._session.scalars(query).first() is not None
            self._session.expunge_all()
        self._done()
        return count

    def _model_object_update_json_nested(self, given: Given, passes: int) -> int:
        count = 0
        for number in range(passes):
            changed = self._with_pumpkin(number)
            for identity in given:
                statement = update(JsonParty).where(JsonParty.id == identity)
                self._session.execute(statement.values(stuff=changed))
                self._done()
                count += 1
        return count

    def _with_pumpkin(self, number: int) -> ColumnElement[Any]:
        """The document with another number in it, as the database makes it."""
        if self._engine.dialect.name == "postgresql":
            return func.jsonb_set(JsonParty.stuff, array(["pumpkin"]), cast(number, JSONB))
        return func.json_set(JsonParty.stuff, "$.pumpkin", number)

    def _model_object_update_json(self, given: Given, passes: int) -> int:
        count = 0
        for number in range(passes):
            for candy, identity in enumerate(given):
                document = self._session.get_one(JsonParty, identity)
                document.stuff = {"pumpkin": number + 2, "candy": candy}
                self._done()
                count += 1
            self.forget()
        return count
