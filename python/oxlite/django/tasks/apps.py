"""The application: ``"oxlite.django.tasks"`` in INSTALLED_APPS."""

from django.apps import AppConfig

__all__ = ["OxliteTasksConfig"]


class OxliteTasksConfig(AppConfig):
    """The table of tasks as a model, its admin page, and ``manage.py oxlite_worker``."""

    name = "oxlite.django.tasks"
    label = "oxlite_tasks"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"
