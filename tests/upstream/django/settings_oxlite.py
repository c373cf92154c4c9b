"""Django's tests on Oxlite, with its own settings and nothing else."""

from settings_stock import *  # noqa: F403

DATABASES = {
    "default": {"ENGINE": "oxlite.django.sqlite3"},
    "other": {"ENGINE": "oxlite.django.sqlite3"},
}
