"""The table of tasks as a model, to look at: what is written of a task is ``oxlite.tasks``' affair.

Invariant: Django neither makes nor changes the table. Its instants are seconds since 1970.
"""

from django.db import models

from oxlite.tasks import store


class StoredTask(models.Model):
    """A task, as it stands in the file."""

    id = models.BigAutoField(primary_key=True)
    queue = models.TextField()
    name = models.TextField("task")
    arguments = models.TextField()
    status = models.TextField(choices=[(one, one) for one in store.STATUSES])
    priority = models.IntegerField()
    enqueued_at = models.FloatField()
    run_after = models.FloatField(null=True)
    expires_at = models.FloatField(null=True)
    attempt = models.IntegerField("attempts")
    worker = models.TextField(null=True)
    started_at = models.FloatField(null=True)
    attempted_at = models.FloatField(null=True)
    finished_at = models.FloatField(null=True)
    result = models.TextField(null=True)
    errors = models.TextField(null=True)

    class Meta:
        """The table is not Django's."""

        managed = False
        db_table = "oxlite_task"
        verbose_name = "task"

    def __str__(self) -> str:
        """Its number and its name."""
        return f"{self.pk} {self.name}"
