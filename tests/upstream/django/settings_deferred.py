"""Django's tests on Oxlite, with transactions begun as Django does by default."""

from settings_oxlite import *  # noqa: F403

DATABASES = {
    "default": {"ENGINE": "oxlite.django.sqlite3", "OPTIONS": {"transaction_mode": None}},
    "other": {"ENGINE": "oxlite.django.sqlite3", "OPTIONS": {"transaction_mode": None}},
}
