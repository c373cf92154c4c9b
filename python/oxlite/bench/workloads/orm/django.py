"""The operations of ``orm`` in Django's ORM, as its documentation writes them.

Each object by itself is a commit after it, as Django does without a transaction; in one
transaction is in one ``atomic()``. A relation to many is loaded with one query from its other end
(``select_related`` of each person's party), since Django joins no relation to many into objects;
where two of them are to be joined, the ORM joins and the objects are made here from its rows.

Invariant: one mapper in a process, since Django is configured once.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from django.db.models import Func

APPLICATION = "oxlite.bench.workloads.orm.django_app"

Settings = Mapping[str, object]


def database(scenario: Scenario, path: Path) -> Settings:
    """The settings of the database at ``path``, as ``scenario`` says.

    A transaction begins as each backend is told to, and alike: IMMEDIATE with tuned settings, and
    as Django does by itself (DEFERRED) with stock ones.
    """
    if scenario.driver == "postgresql":
        engine = "django.db.backends.postgresql"
        return {"ENGINE": engine, "HOST": str(path.parent), "NAME": path.name, "USER": USER}
    stock = scenario.pragmas in {None, "stock"}
    mode = "DEFERRED" if stock else "IMMEDIATE"
    options: dict[str, object] = {"timeout": TIMEOUT_SECONDS, "transaction_mode": mode}
    if scenario.driver == "oxlite":
        options["profile"] = PROFILES.get(scenario.pragmas or "", "stock")
        return {"ENGINE": "oxlite.django.sqlite3", "NAME": str(path), "OPTIONS": options}
    settings = pragmas.SETS[scenario.pragmas or "stock"]
    options["init_command"] = ";".join(f"PRAGMA {name}={value}" for name, value, _ in settings)
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": options}


class Django:
    """See :class:`~oxlite.bench.workloads.orm.mapper.Mapper`."""

    def __init__(self, settings: Settings) -> None:
        import django
        from django.conf import settings as global_settings

        global_settings.configure(
            DATABASES={"default": settings}, INSTALLED_APPS=(APPLICATION,), USE_TZ=True
        )
        django.setup()
        from django.db import connection

        from oxlite.bench.workloads.orm.django_app import models

        self._models = models
        self._party = models.Party.objects
        self._person = models.Person.objects
        self._document = models.JsonParty.objects
        self._connection = connection
        with connection.schema_editor() as editor:
            for model in models.MODELS:
                editor.create_model(model)
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
                self._eager_to_one(scale, lambda: self._person.prefetch_related("party"))
            ),
            "eager_loading_single_query_with_1_to_1_records": lambda scale: self._eager_to_one(
                scale, lambda: self._person.select_related("party")
            ),
            "eager_loading_query_per_association_with_1_to_n_records": self._eager_to_many,
            "eager_loading_single_query_with_1_to_n_records": self._eager_to_many_at_once,
            "eager_loading_query_per_association_with_1_to_n_to_n_records": self._eager_to_both,
            "eager_loading_single_query_with_1_to_n_to_n_records": self._eager_to_both_at_once,
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
        with self.transaction():
            for manager in (self._person, self._party, self._document):
                manager.all().delete()
        with self.transaction():
            return self._operations[name](scale)

    def contents(self) -> list[Content]:
        """See the protocol."""
        people = self._person.select_related("party", "other_party")
        return [
            *((theme,) for theme in self._party.values_list("theme", flat=True)),
            *((one.name, one.address, (one.party or one.other_party).theme) for one in people),
            *(
                (stuff["pumpkin"], stuff["candy"])
                for stuff in self._document.values_list("stuff", flat=True)
            ),
        ]

    def transaction(self) -> AbstractContextManager[None]:
        """See the protocol."""
        from django.db import transaction

        atomic: AbstractContextManager[None] = transaction.atomic()
        return atomic

    def versions(self) -> dict[str, str]:
        """See the protocol."""
        import django

        return {"django": django.get_version()}

    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """See the protocol."""
        self._connection.ensure_connection()
        return self._connection.connection

    def close(self) -> None:
        """See the protocol."""
        self._connection.close()

    def _parties(self, count: int) -> list[Any]:
        parties = [self._models.Party(theme=f"theme {number}") for number in range(count)]
        made: list[Any] = self._party.bulk_create(parties)
        return made

    def _pairs(self, count: int) -> None:
        self._person.bulk_create(
            self._models.Person(party=party, name=f"name {number}", address="here")
            for number, party in enumerate(self._parties(count))
        )

    def _crowds(self, n: int, *, others: bool = False) -> None:
        relations = ("party", "other_party") if others else ("party",)
        self._person.bulk_create(
            self._models.Person(**{relation: party}, name=f"name {number}", address="here")
            for party in self._parties(n)
            for number in range(n)
            for relation in relations
        )

    def _documents(self, count: int) -> list[int]:
        documents = [self._models.JsonParty(stuff=DOCUMENT) for _ in range(count)]
        return [document.pk for document in self._document.bulk_create(documents)]

    def _creation(self, scale: Scale) -> Work:
        def work() -> int:
            for number in range(50 * scale.n):
                self._party.create(theme=f"theme {number}")
            return 50 * scale.n

        return work

    def _select(self, scale: Scale) -> Work:
        self._parties(100 * scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(scale.n)):
                query = self._party.all()
                if not scale.faithful:
                    count += len(list(query))
            return count

        return work

    def _select_by_pk(self, scale: Scale) -> Work:
        keys = [party.pk for party in self._parties(10 * scale.n)]

        def work() -> int:
            count = 0
            for _ in range(scale.times(scale.n)):
                for key in keys:
                    count += self._party.get(pk=key) is not None
            return count

        return work

    def _select_by_attr(self, scale: Scale) -> Work:
        themes = [party.theme for party in self._parties(10 * scale.n)]

        def work() -> int:
            count = 0
            for _ in range(scale.times(scale.n)):
                for theme in themes:
                    count += self._party.filter(theme=theme).first() is not None
            return count

        return work

    def _select_and_save(self, scale: Scale) -> Work:
        self._parties(50 * scale.n)

        def work() -> int:
            count = 0
            for party in self._party.all():
                party.theme += "1"
                party.save()
                count += 1
            return count

        return work

    def _destruction(self, scale: Scale) -> Work:
        self._parties(100 * scale.n)

        def work() -> int:
            return sum(party.delete()[0] for party in self._party.all())

        return work

    def _associated_creation(self, scale: Scale) -> Work:
        def work() -> int:
            for number in range(20 * scale.n):
                party = self._party.create(theme=f"theme {number}")
                party.people.create(name=f"name {number}", address="here")
            return 40 * scale.n

        return work

    def _associated_destruction(self, scale: Scale) -> Work:
        self._pairs(25 * scale.n)

        def work() -> int:
            count = 0
            for person in self._person.all():
                party = person.party
                count += person.delete()[0]
                count += party.delete()[0]
            return count

        return work

    def _eager_to_one(self, scale: Scale, people: Callable[[], Any]) -> Work:
        self._pairs(20 * scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(22)):
                query = people()
                if not scale.faithful:
                    count += sum(person.party is not None for person in query)
            return count

        return work

    def _eager_to_many(self, scale: Scale) -> Work:
        self._crowds(scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(22)):
                query = self._party.prefetch_related("people")
                if not scale.faithful:
                    count += sum(len(party.people.all()) for party in query)
            return count

        return work

    def _eager_to_many_at_once(self, scale: Scale) -> Work:
        self._crowds(scale.n)

        def work() -> int:
            count = 0
            for _ in range(scale.times(22)):
                query = self._person.select_related("party")
                if scale.faithful:
                    continue
                people: dict[Any, list[Any]] = {}
                for person in query:
                    people.setdefault(person.party, []).append(person)
                count += sum(map(len, people.values()))
            return count

        return work

    def _eager_to_both(self, scale: Scale) -> Work:
        self._crowds(scale.n, others=True)

        def work() -> int:
            count = 0
            for _ in range(scale.times(9)):
                query = self._party.prefetch_related("people", "other_people")
                if scale.faithful:
                    continue
                for party in query:
                    count += len(party.people.all()) + len(party.other_people.all())
            return count

        return work

    def _eager_to_both_at_once(self, scale: Scale) -> Work:
        self._crowds(scale.n, others=True)
        person = ("id", "name", "address")
        columns = [f"{end}__{name}" for end in ("people", "other_people") for name in person]

        def work() -> int:
            count = 0
            for _ in range(scale.times(1)):
                query = self._party.values_list("id", "theme", *columns)
                if scale.faithful:
                    continue
                parties: dict[int, Any] = {}
                people: dict[int, Any] = {}
                for key, theme, *joined in query:
                    if key not in parties:
                        parties[key] = self._models.Party(id=key, theme=theme)
                    for values in (joined[:3], joined[3:]):
                        if values[0] not in people:
                            fields = dict(zip(person, values, strict=True))
                            people[values[0]] = self._models.Person(**fields)
                count += len(people)
            return count

        return work

    def _lazy_to_one(self, scale: Scale) -> Work:
        self._pairs(20 * scale.n)

        def work() -> int:
            return sum(person.party is not None for person in self._person.all())

        return work

    def _lazy_to_many(self, scale: Scale) -> Work:
        self._crowds(scale.n)

        def work() -> int:
            return sum(
                len(party.people.all())
                for _ in range(scale.times(16))
                for party in self._party.all()
            )

        return work

    def _threads(self, scale: Scale, threads: int) -> Work:
        def live(thread: int) -> int:
            count = 0
            try:
                for number in range(scale.n):
                    self._party.create(theme=f"{thread} {number}")
                    count += 1
                for _ in range(scale.n):
                    party = self._party.filter(theme__startswith=f"{thread} ").first()
                    party.theme += "1"
                    party.save()
                    count += 2 + party.delete()[0]
            finally:
                # Each thread has a connection of its own.
                self._connection.close()
            return count

        return lambda: run_threads(threads, live, one_by_one=scale.faithful)

    def _select_json(self, scale: Scale) -> Work:
        self._documents(10 * scale.n)

        def work() -> int:
            return sum(
                self._document.filter(stuff__pumpkin=1).first() is not None
                for _ in range(10 * scale.n * scale.times(scale.n))
            )

        return work

    def _update_json_nested(self, scale: Scale) -> Work:
        keys = self._documents(10 * scale.n)

        def work() -> int:
            count = 0
            for number in range(scale.times(scale.n)):
                changed = self._with_pumpkin(number)
                for key in keys:
                    count += self._document.filter(pk=key).update(stuff=changed)
            return count

        return work

    def _with_pumpkin(self, number: int) -> "Func":
        """The document with another number in it, as the database makes it."""
        from django.db.models import F, Func, JSONField, Value

        if self._connection.vendor == "postgresql":
            function, path, value = "jsonb_set", "{pumpkin}", Value(number, JSONField())
        else:
            function, path, value = "json_set", "$.pumpkin", Value(number)
        return Func(F("stuff"), Value(path), value, function=function, output_field=JSONField())

    def _update_json(self, scale: Scale) -> Work:
        keys = self._documents(10 * scale.n)

        def work() -> int:
            count = 0
            for number in range(scale.times(scale.n)):
                for candy, key in enumerate(keys):
                    document = self._document.get(pk=key)
                    document.stuff = {"pumpkin": number + 2, "candy": candy}
                    document.save()
                    count += 1
            return count

        return work
