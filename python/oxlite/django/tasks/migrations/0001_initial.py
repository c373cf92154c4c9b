"""The table of tasks, in the databases of the site in which backends of Oxlite's are.

What is made is ``oxlite.tasks.store``'s affair: whatever is missing, by whoever comes first.
"""

from typing import Any

from django.db import migrations, models

from oxlite.django.tasks.backend import backends
from oxlite.django.tasks.place import SiteDatabase
from oxlite.notifications import joined
from oxlite.tasks import store


def make_tables(_apps: Any, schema_editor: Any) -> None:
    """Make them, if they are to be there."""
    wrapper = schema_editor.connection
    for backend in backends():
        if isinstance(backend.place, SiteDatabase) and backend.place.alias == wrapper.alias:
            store.TABLES.prepare(joined(wrapper))
            return


class Migration(migrations.Migration):
    """See the module."""

    initial = True
    dependencies: list[Any] = []  # noqa: RUF012 - Django's form
    operations = [  # noqa: RUF012
        migrations.RunPython(make_tables, migrations.RunPython.noop),
        migrations.CreateModel(
            name="StoredTask",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("queue", models.TextField()),
                ("name", models.TextField(verbose_name="task")),
                ("arguments", models.TextField()),
                (
                    "status",
                    models.TextField(choices=[(one, one) for one in store.STATUSES]),
                ),
                ("priority", models.IntegerField()),
                ("enqueued_at", models.FloatField()),
                ("run_after", models.FloatField(null=True)),
                ("expires_at", models.FloatField(null=True)),
                ("attempt", models.IntegerField(verbose_name="attempts")),
                ("worker", models.TextField(null=True)),
                ("started_at", models.FloatField(null=True)),
                ("attempted_at", models.FloatField(null=True)),
                ("finished_at", models.FloatField(null=True)),
                ("result", models.TextField(null=True)),
                ("errors", models.TextField(null=True)),
            ],
            options={
                "verbose_name": "task",
                "db_table": "oxlite_task",
                "managed": False,
                "base_manager_name": "none_at_all",
                "default_manager_name": "none_at_all",
            },
            managers=[("none_at_all", models.Manager())],
        ),
    ]
