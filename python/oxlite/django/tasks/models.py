"""The table of tasks as a model, to look at: what is written of a task is ``oxlite.tasks``' affair.

Its instants are seconds since 1970.

Invariants:
- Django neither makes nor changes the table.
- ``dumpdata`` dumps no tasks: a row without the columns that the model lacks would be another task,
  and in other databases there is no table.
"""

from typing import Any

from django.db import models

from oxlite.own_tables import text_of
from oxlite.tasks import store


class _Text(models.TextField):
    """Text that other programs have written, perhaps in another encoding."""

    def deconstruct(self) -> Any:
        """To migrations it is Django's field."""
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs

    def select_format(self, _compiler: Any, sql: str, params: Any) -> Any:
        """As bytes: what is no UTF-8 cannot be read as text."""
        return f"CAST({sql} AS BLOB)", params

    def from_db_value(self, value: Any, _expression: Any, _connection: Any) -> str | None:
        """Make text of it."""
        return None if value is None else text_of(value)


class _NoTasks(models.Manager):
    """What Django takes where no manager is named."""

    def get_queryset(self) -> Any:
        """None of them."""
        return super().get_queryset().none()


class StoredTask(models.Model):
    """A task, as it stands in the file. ``StoredTask.objects`` has them all."""

    id = models.BigAutoField(primary_key=True)
    queue = _Text()
    name = _Text("task")
    arguments = _Text()
    status = models.TextField(choices=[(one, one) for one in store.STATUSES])
    priority = models.IntegerField()
    enqueued_at = models.FloatField()
    run_after = models.FloatField(null=True)
    expires_at = models.FloatField(null=True)
    attempt = models.IntegerField("attempts")
    worker = _Text(null=True)
    started_at = models.FloatField(null=True)
    attempted_at = models.FloatField(null=True)
    finished_at = models.FloatField(null=True)
    result = _Text(null=True)
    errors = _Text(null=True)

    objects = models.Manager()
    none_at_all = _NoTasks()

    class Meta:
        """The table is not Django's."""

        managed = False
        # The one for ``dumpdata --all``, the other without that.
        base_manager_name = default_manager_name = "none_at_all"
        db_table = "oxlite_task"
        verbose_name = "task"

    def __str__(self) -> str:
        """Its number and its name."""
        return f"{self.pk} {self.name}"
