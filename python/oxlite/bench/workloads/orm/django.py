"""The operations of ``orm`` in Django's ORM, as its documentation writes them.

Each object by itself is a commit after it, as Django does without a transaction; in one
transaction is in one ``atomic()``. A relation to many is loaded with one query from its other end
(``select_related`` of each person's party), since Django joins no relation to many into objects;
where two of them are to be joined, the ORM joins and the objects are made here from its rows.

Invariant: one mapper in a process, since Django is configured once.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.oxlite import PROFILES
from oxlite.bench.drivers.postgresql import USER
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import TIMEOUT_SECONDS, Content, Given, Mapper

if TYPE_CHECKING:
    from django.db.models import Func

APPLICATION = "oxlite.bench.workloads.orm.django_app"

COLUMNS = ("id", "name", "address")
"""What is read of a person that is made of a row."""

Settings = Mapping[str, object]


def database(scenario: Scenario, path: Path) -> Settings:
    """The settings of the database at ``path``, as ``scenario`` says.

    A transaction begins as each backend is told to, and alike: IMMEDIATE with tuned settings, and
    as Django does by itself (DEFERRED) with stock ones.
    """
    if scenario.driver == "postgresql":
        engine = "django.db.backends.postgresql"
        return {"ENGINE": engine, "HOST": str(path.parent), "NAME": path.name, "USER": USER}
    stock = scenario.get("pragmas") in {None, "stock"}
    mode = "DEFERRED" if stock else "IMMEDIATE"
    options: dict[str, object] = {"timeout": TIMEOUT_SECONDS, "transaction_mode": mode}
    if scenario.driver == "oxlite":
        options["profile"] = PROFILES.get(scenario.get("pragmas", ""), "stock")
        return {"ENGINE": "oxlite.django.sqlite3", "NAME": str(path), "OPTIONS": options}
    settings = pragmas.SETS[scenario.get("pragmas", "stock")]
    options["init_command"] = ";".join(f"PRAGMA {name}={value}" for name, value, _ in settings)
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": options}


class Django(Mapper):
    """See the base class."""

    def __init__(self, settings: Settings) -> None:
        import django
        from django.conf import settings as global_settings

        global_settings.configure(
            DATABASES={"default": settings},
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
            INSTALLED_APPS=(APPLICATION,),
            USE_TZ=True,
        )
        django.setup()
        from django.db import connection

        from oxlite.bench.workloads.orm.django_app import models

        self.party, self.person, self.document = models.MODELS
        self._party, self._person, self._document = (one.objects for one in models.MODELS)
        self._connection = connection
        with connection.schema_editor() as editor:
            for model in models.MODELS:
                editor.create_model(model)
        eager, at_once = "eager_loading_query_per_association", "eager_loading_single_query"
        both = ("people", "other_people")
        joined = [f"{end}__{name}" for end in both for name in COLUMNS]
        self.reads = {
            "model_object_select": (self._party.all, lambda query: len(list(query))),
            f"{eager}_with_1_to_1_records": (
                lambda: self._person.prefetch_related("party"),
                self._with_party,
            ),
            f"{at_once}_with_1_to_1_records": (
                lambda: self._person.select_related("party"),
                self._with_party,
            ),
            f"{eager}_with_1_to_n_records": (
                lambda: self._party.prefetch_related("people"),
                lambda query: sum(len(party.people.all()) for party in query),
            ),
            f"{at_once}_with_1_to_n_records": (
                lambda: self._person.select_related("party"),
                self._by_party,
            ),
            f"{eager}_with_1_to_n_to_n_records": (
                lambda: self._party.prefetch_related(*both),
                lambda query: sum(
                    len(party.people.all()) + len(party.other_people.all()) for party in query
                ),
            ),
            f"{at_once}_with_1_to_n_to_n_records": (
                lambda: self._party.values_list("id", "theme", *joined),
                self._made_of_rows,
            ),
        }

    def empty(self) -> None:
        """See the base class."""
        with self.transaction():
            for manager in (self._person, self._party, self._document):
                manager.all().delete()

    def add(self, objects: Iterable[Any]) -> list[Any]:
        """See the base class."""
        every = list(objects)
        made: list[Any] = type(every[0]).objects.bulk_create(every)
        return made

    def forget(self) -> None:
        """See the base class: Django remembers nothing."""

    def contents(self) -> list[Content]:
        """See the base class."""
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
        """See the base class."""
        from django.db import transaction

        atomic: AbstractContextManager[None] = transaction.atomic()
        return atomic

    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """See the base class."""
        self._connection.ensure_connection()
        return self._connection.connection

    def close(self) -> None:
        """See the base class."""
        self._connection.close()

    @staticmethod
    def _with_party(people: Iterable[Any]) -> int:
        return sum(person.party is not None for person in people)

    @staticmethod
    def _by_party(people: Iterable[Any]) -> int:
        found: dict[Any, list[Any]] = {}
        for person in people:
            found.setdefault(person.party, []).append(person)
        return sum(map(len, found.values()))

    def _made_of_rows(self, rows: Iterable[Any]) -> int:
        parties: dict[int, Any] = {}
        people: dict[int, Any] = {}
        for key, theme, *joined in rows:
            if key not in parties:
                parties[key] = self.party(id=key, theme=theme)
            for values in (joined[:3], joined[3:]):
                if values[0] not in people:
                    people[values[0]] = self.person(**dict(zip(COLUMNS, values, strict=True)))
        return len(people)

    def _model_object_creation(self, given: Given, _passes: int) -> int:
        for number in given:
            self._party.create(theme=f"theme {number}")
        return len(given)

    def _model_object_select_by_pk(self, given: Given, passes: int) -> int:
        return sum(self._party.get(pk=key) is not None for _ in range(passes) for key in given)

    def _model_object_select_by_attr(self, given: Given, passes: int) -> int:
        return sum(
            self._party.filter(theme=theme).first() is not None
            for _ in range(passes)
            for theme in given
        )

    def _model_object_select_and_save(self, _given: Given, _passes: int) -> int:
        count = 0
        for party in self._party.all():
            party.theme += "1"
            party.save()
            count += 1
        return count

    def _model_object_destruction(self, _given: Given, _passes: int) -> int:
        return sum(party.delete()[0] for party in self._party.all())

    def _model_object_and_associated_object_creation(self, given: Given, _passes: int) -> int:
        for number in given:
            party = self._party.create(theme=f"theme {number}")
            party.people.create(name=f"name {number}", address="here")
        return 2 * len(given)

    def _model_object_and_associated_object_destruction(self, _given: Given, _passes: int) -> int:
        count = 0
        for person in self._person.all():
            party = person.party
            count += person.delete()[0]
            count += party.delete()[0]
        return count

    def _lazy_loading_with_1_to_1_records(self, _given: Given, _passes: int) -> int:
        return self._with_party(self._person.all())

    def _lazy_loading_with_1_to_n_records(self, _given: Given, passes: int) -> int:
        return sum(len(party.people.all()) for _ in range(passes) for party in self._party.all())

    def live(self, n: int, thread: int) -> int:
        """See the base class."""
        count = 0
        try:
            for number in range(n):
                self._party.create(theme=f"{thread} {number}")
                count += 1
            for _ in range(n):
                party = self._party.filter(theme__startswith=f"{thread} ").first()
                party.theme += "1"
                party.save()
                count += 2 + party.delete()[0]
        finally:
            # Each thread has a connection of its own.
            self._connection.close()
        return count

    def _model_object_select_json_nested(self, given: Given, passes: int) -> int:
        return sum(
            self._document.filter(stuff__pumpkin=1).first() is not None
            for _ in range(len(given) * passes)
        )

    def _model_object_update_json_nested(self, given: Given, passes: int) -> int:
        return sum(
            self._document.filter(pk=key).update(stuff=changed)
            for changed in map(self._with_pumpkin, range(passes))
            for key in given
        )

    def _with_pumpkin(self, number: int) -> "Func":
        """The document with another number in it, as the database makes it."""
        from django.db.models import F, Func, JSONField, Value

        if self._connection.vendor == "postgresql":
            function, path, value = "jsonb_set", "{pumpkin}", Value(number, JSONField())
        else:
            function, path, value = "json_set", "$.pumpkin", Value(number)
        return Func(F("stuff"), Value(path), value, function=function, output_field=JSONField())

    def _model_object_update_json(self, given: Given, passes: int) -> int:
        count = 0
        for number in range(passes):
            for candy, key in enumerate(given):
                document = self._document.get(pk=key)
                document.stuff = {"pumpkin": number + 2, "candy": candy}
                document.save()
                count += 1
        return count
