"""The application: ``"oxlite.django"`` in INSTALLED_APPS adds ``manage.py oxlite``."""

from django.apps import AppConfig

__all__ = ["OxliteConfig"]


class OxliteConfig(AppConfig):
    """An application without models."""

    name = "oxlite.django"
    label = "oxlite"
    verbose_name = "Oxlite"
