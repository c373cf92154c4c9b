"""The blog for a server that speaks ASGI."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "oxlite.bench.workloads.web.blog.settings")

application = get_asgi_application()
