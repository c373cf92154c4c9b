"""The application's name, as Django's registry knows it."""

from django.apps import AppConfig


class BlogConfig(AppConfig):
    """The blog."""

    name = "oxlite.bench.workloads.web.blog"
    label = "blog"
    default_auto_field = "django.db.models.BigAutoField"
