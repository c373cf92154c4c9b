"""``ATOMIC_REQUESTS`` for requests that only read.

A site opts in by naming ``ReadOnlyMiddleware`` as the last one of MIDDLEWARE: Django begins the
transaction of a view right after the last ``process_view()``, and that transaction is meant.

Invariant: of a request, only the transactions that ATOMIC_REQUESTS begins around its view are
changed.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.db import connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from oxlite.django.next_transaction import begin_next_read_only

__all__ = ["ReadOnlyMiddleware"]

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class ReadOnlyMiddleware:
    """Has views that answer GET, HEAD, OPTIONS and TRACE run in a transaction that only reads.

    Those marked with ``oxlite.django.read_only_exempt`` run as before, and so do all on databases
    without ATOMIC_REQUESTS, and views that Django's ``non_atomic_requests`` excepts.

    Source: https://www.rfc-editor.org/rfc/rfc9110#name-safe-methods
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer a request."""
        if self._is_async:
            return self._answer(request)
        try:
            return self.get_response(request)
        finally:
            begin_next_read_only(())

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return await self.get_response(request)
        finally:
            begin_next_read_only(())

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, kwargs: object
    ) -> None:
        """Say which databases the view only reads."""
        only_reads = request.method in _SAFE and not getattr(view, "read_only_exempt", False)
        excepted = getattr(view, "_non_atomic_requests", ())
        begin_next_read_only(
            alias
            for alias, settings in connections.settings.items()
            if only_reads and settings["ATOMIC_REQUESTS"] and alias not in excepted
        )
