"""The blog's settings, with the database from the environment.

``BLOG_ENGINE``
    the backend: ``oxlite.django.sqlite3`` unless named.
``BLOG_DATABASE``
    the file: ``blog.db`` in the current directory unless named. Of a server the database's name.
``BLOG_OPTIONS``
    the backend's OPTIONS, as a JSON object: ``{"transaction_mode": "IMMEDIATE"}``. Its ``busy``
    may be ``held`` too, the lab's handler that waits as SQLite does and keeps the GIL.
``BLOG_ATOMIC_REQUESTS``
    ``1`` makes each request one transaction, pages included; else views begin their own.
``BLOG_KEEPS_CONNECTIONS``
    ``1`` has each thread keep its connection; else it is closed after each request.
``BLOG_DEBUG``
    ``1`` shows Django's own pages of what went wrong.
``BLOG_MAILS``
    a directory into which mails are written, instead of being sent: then authors are told of
    comments, by tasks in the same file. Without it there are no mails.
``BLOG_TASKS``
    a file for the tasks alone: ``tasks.db`` in the current directory where the database is no
    SQLite of Oxlite's. A task is written then when the transaction has committed.
``BLOG_SECRET_KEY``
    what forms are signed with.

Everything else is as Django has it by itself.
"""

import json
import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from oxlite.bench.drivers.handlers import held

TIMEOUT_SECONDS = 5.0
"""As long as the backends wait by themselves."""


def _options() -> dict[str, object]:
    text = os.environ.get("BLOG_OPTIONS", "{}")
    try:
        options = json.loads(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"BLOG_OPTIONS is no JSON: {error}") from None
    if not isinstance(options, dict):
        raise ImproperlyConfigured(f"BLOG_OPTIONS must be a JSON object, not {text}")
    if options.get("busy") == "held":
        del options["busy"]
        options["busy_handler"] = held(options.setdefault("timeout", TIMEOUT_SECONDS))
    return options


ROOT = "oxlite.bench.workloads.web.blog"

DEBUG = os.environ.get("BLOG_DEBUG") == "1"
SECRET_KEY = os.environ.get("BLOG_SECRET_KEY", "for an example on one's own machine")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
INSTALLED_APPS = [ROOT]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = f"{ROOT}.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]
WSGI_APPLICATION = f"{ROOT}.wsgi.application"
ASGI_APPLICATION = f"{ROOT}.asgi.application"
ENGINE = os.environ.get("BLOG_ENGINE", "oxlite.django.sqlite3")
NAME = os.environ.get("BLOG_DATABASE", "blog.db")
MAILS = os.environ.get("BLOG_MAILS")
if MAILS is not None:
    INSTALLED_APPS += ["oxlite.django.tasks"]
    FILE = os.environ.get("BLOG_TASKS") or ("" if ENGINE.startswith("oxlite.") else "tasks.db")
    TASKS = {
        "default": {
            "BACKEND": "oxlite.django.tasks.OxliteBackend",
            "OPTIONS": {"path": Path(FILE).absolute()} if FILE else {},
        }
    }
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = Path(MAILS).absolute()
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES = {
    "default": {
        "ENGINE": ENGINE,
        "NAME": NAME if ENGINE == "django.db.backends.postgresql" else Path(NAME).absolute(),
        "ATOMIC_REQUESTS": os.environ.get("BLOG_ATOMIC_REQUESTS") == "1",
        "CONN_MAX_AGE": None if os.environ.get("BLOG_KEEPS_CONNECTIONS") == "1" else 0,
        "OPTIONS": _options(),
    }
}
