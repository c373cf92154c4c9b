"""Runs django-tasks-db's tests with Oxlite's backend in its place; says what became of each.

Started by test_suite.py in an interpreter of its own. The tests are those of the source
distribution, with the changes that declared.toml lists. What they name of django-tasks-db, its
model and its command, is made here of Oxlite's; the module with their tasks and their settings are
not in the distribution, and are made anew.

Invariant: django-tasks-db's own code is never imported.
"""

import json
import os
import signal
import sys
import time
import tomllib
import types
import unittest
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RELEASE = "0.13.0"
SECONDS = 30


def configure(folder: Path) -> None:
    """The settings of a site."""
    import django
    from django.conf import settings

    settings.configure(
        SECRET_KEY="a",
        USE_TZ=True,
        ROOT_URLCONF="tests.tasks",
        INSTALLED_APPS=[
            *([] if django.VERSION >= (6, 0) else ["django_tasks"]),
            "oxlite.django.tasks",
        ],
        DATABASES={
            "default": {
                "ENGINE": "oxlite.django.sqlite3",
                "NAME": folder / ("test.db" if "OF_WORKER" in os.environ else "site.db"),
                "TEST": {"NAME": folder / "test.db"},
            }
        },
        TASKS={
            "default": {
                "BACKEND": "django_tasks_db.DatabaseBackend",
                "QUEUES": ["default", "queue-1"],
            },
            "dummy": {"BACKEND": "django_tasks_db.DummyBackend"},
        },
    )


def substitute(folder: Path) -> None:
    """Put Oxlite under the names that the tests import, and set Django up."""
    package = types.ModuleType("tests")
    package.__path__ = [str(folder / "tests"), str(HERE)]
    made = types.ModuleType("django_tasks_db")
    sys.modules.update({"tests": package, "django_tasks_db": made})
    configure(folder)

    from oxlite.django.tasks import OxliteBackend, words

    dummy = words.task_backends.__class__.__module__ + ".backends.dummy"
    vars(made).update(
        DatabaseBackend=OxliteBackend,
        DummyBackend=__import__(dummy, fromlist=["DummyBackend"]).DummyBackend,
        compat=words,
    )

    import django

    django.setup()
    from django.core.management import BaseCommand, get_commands
    from django.db import transaction

    from oxlite.django.tasks import run_ready_tasks
    from oxlite.django.tasks.models import StoredTask

    class Command(BaseCommand):
        """The command of a worker in batch mode: what is ready is run."""

        def add_arguments(self, parser: Any) -> None:  # noqa: ANN401
            for name in ("backend-name", "queue-name", "exclude-queues", "worker-id", "backend"):
                parser.add_argument(f"--{name}", default="default")
            for name in ("batch", "startup-delay"):
                parser.add_argument(f"--{name}", action="store_true")
            for name in ("interval", "max-tasks"):
                parser.add_argument(f"--{name}", type=int)

        def handle(self, *_args: object, **options: Any) -> None:  # noqa: ANN401
            queues = options["queue_name"].split(",")
            said = None if queues == ["*"] else queues
            run_ready_tasks(options["backend_name"], options["max_tasks"], queue_names=said)

    def add_command() -> None:
        get_commands()["db_worker"] = Command()  # type: ignore[assignment]

    Outcomes.before = staticmethod(add_command)
    model = _model(StoredTask)

    def module(name: str, **names: object) -> None:
        sys.modules[f"django_tasks_db.{name}"] = types.ModuleType(name)
        vars(sys.modules[f"django_tasks_db.{name}"]).update(names)

    module("models", DBTaskResult=model, get_date_max=None)
    module("admin", DBTaskResultAdmin=None)
    module("utils", exclusive_transaction=transaction.atomic, normalize_uuid=str)
    module("management")
    module("management.commands")
    module("management.commands.prune_db_task_results", logger=None)


def _model(stored: Any) -> Any:  # noqa: ANN401
    """Django-tasks-db's model, as far as the tests use it, on the table of Oxlite's."""
    from asgiref.sync import sync_to_async
    from django.db import models
    from django.db.models import Q

    from oxlite.django.tasks.words import task_backends

    def column(name: str, value: object) -> dict[str, object]:
        if name == "worker_ids":
            assert isinstance(value, list)
            return {"worker": value[-1], "attempt": len(value)}
        if name == "return_value":
            return {"result": json.dumps(value)}
        if name == "status":
            return {"status": str(value).lower()}
        if name == "started_at":
            assert isinstance(value, datetime)
            return {"started_at": value.timestamp(), "attempted_at": value.timestamp()}
        return {name: value.timestamp() if isinstance(value, datetime) else value}

    class Tasks(models.QuerySet):  # type: ignore[type-arg]
        def ready(self) -> "Tasks":
            now = time.time()
            return self.filter(Q(status="ready") | Q(status="scheduled", run_after__lte=now))

        def successful(self) -> "Tasks":
            return self.filter(status="successful")

        def failed(self) -> "Tasks":
            return self.filter(status="failed")

        def update(self, **fields: object) -> int:
            columns: dict[str, object] = {}
            for name, value in fields.items():
                columns |= column(name, value)
            return super().update(**columns)

        async def aupdate(self, **fields: object) -> int:
            return await sync_to_async(self.update)(**fields)

        def create(self, *, task_path: str, args_kwargs: dict[str, Any], **_rest: object) -> Any:  # noqa: ANN401
            call = [args_kwargs.get("args", []), args_kwargs.get("kwargs", {})]
            return super().create(
                name=task_path,
                arguments=json.dumps(call),
                queue="default",
                status="ready",
                priority=0,
                enqueued_at=time.time(),
                attempt=0,
            )

    class DBTaskResult(stored):  # type: ignore[misc]
        objects = Tasks.as_manager()

        class Meta:
            proxy = True
            app_label = "oxlite_tasks"

        @property
        def task(self) -> Any:  # noqa: ANN401
            return task_backends["default"].task_of(self._row())

        @property
        def task_result(self) -> Any:  # noqa: ANN401
            return task_backends["default"].get_result(str(self.pk))

        @property
        def task_path(self) -> str:
            return str(self.name)

        @property
        def worker_ids(self) -> list[str]:
            return [self.worker] if self.worker else []

        def _row(self) -> Any:  # noqa: ANN401
            return types.SimpleNamespace(
                name=self.name, priority=self.priority, queue=self.queue, run_after=self.run_after
            )

    return DBTaskResult


def _too_long(*_args: object) -> None:
    raise TimeoutError(f"it has not ended after {SECONDS} seconds")


class Outcomes(unittest.TestResult):
    """Notes what became of each test; the worst of its parts counts."""

    before: Callable[[], None]

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, tuple[str, str]] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        type(self).before()  # settings that change take the command away
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(SECONDS)
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        signal.alarm(0)
        super().stopTest(test)

    def _note(self, test: unittest.TestCase, outcome: str, said: str) -> None:
        name = ".".join(test.id().split(".")[2:4])
        if outcome != "passed" or name not in self.found:
            self.found[name] = (outcome, said)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed", "")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802, ANN401
        self._note(test, "failed", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    addFailure = addError  # noqa: N815

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._note(test, "skipped", reason)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802, ANN401
        if err is not None:
            self._note(test, "failed", self._exc_info_to_string(err, subtest))  # type: ignore[attr-defined]


def manage() -> None:
    """``python -m manage db_worker …`` of the tests that start processes."""
    substitute(Path.cwd())
    from django.core.management import call_command
    from django.db import transaction

    from oxlite.django.tasks import run_ready_tasks

    if "--batch" in sys.argv:
        # Beside a worker that still runs what it has, whose supervisor another test has killed.
        with transaction.atomic():
            run_ready_tasks()
        return
    call_command("oxlite_worker", "--verbosity", "1", "--threads", "1", "--no-reload")


MANAGE = """
import os, runpy, sys
os.environ["OF_WORKER"] = "1"
runpy.run_path({suite!r})["manage"]()
"""


def main() -> None:
    """Run them."""
    tests, folder = Path(sys.argv[1]), Path(sys.argv[2])
    text = (tests / "tests" / "tests.py").read_text()
    for change in tomllib.loads((HERE / "declared.toml").read_text())["changed"]:
        assert change["from"] in text, f"needless: {change['from']}"
        text = text.replace(change["from"], change["to"])
    (folder / "tests").mkdir()
    (folder / "tests" / "tests.py").write_text(text)
    (folder / "manage.py").write_text(MANAGE.format(suite=str(HERE / "suite.py")))
    substitute(folder)
    from django.test import TransactionTestCase
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases

    # How many queries django-tasks-db makes: none of Oxlite's is Django's.
    TransactionTestCase.assertNumQueries = lambda *_args, **_options: nullcontext()  # type: ignore[assignment,method-assign,return-value]
    setup_test_environment()
    old = setup_databases(0, False)
    outcomes = Outcomes()
    wanted = [f"tests.tests.{name}" for name in sys.argv[3:]] or ["tests.tests"]
    unittest.defaultTestLoader.loadTestsFromNames(wanted).run(outcomes)
    teardown_databases(old, 0)
    print("\n" + json.dumps(outcomes.found))


if __name__ == "__main__":
    main()
