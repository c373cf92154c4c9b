"""One address for a load generator: ``POST /benchmark/<mix>`` does one of the seven things.

What is picked is called as if it had been asked for by itself, with any post, comment or user; what
is changed is picked in the same transaction. ``mixes`` has the weights.

Invariant: the answer says in the header ``Blog-Endpoint`` what was done.
"""

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from oxlite.bench.workloads.web.blog import views
from oxlite.bench.workloads.web.blog.models import Comment, Picking, Post, User
from oxlite.bench.workloads.web.headers import ENDPOINT
from oxlite.bench.workloads.web.mixes import MIXES, SINGLE_INSERT, TEXT, TRIES, pick_endpoint


def _form(request: HttpRequest, **values: str) -> HttpRequest:
    request.POST = QueryDict(mutable=True)
    request.POST.update(values)
    return request


def _page(request: HttpRequest) -> HttpRequest:
    request.method = "GET"
    return request


@transaction.atomic
def _of_any(view: views.View, request: HttpRequest, rows: Picking) -> HttpResponse:
    return view(request, rows.pick_key())


def _post_create(request: HttpRequest) -> HttpResponse:
    title = f"A post called {secrets.token_hex(12)}"
    return views.post_create(_form(request, title=title, body=TEXT))


def _post_show(request: HttpRequest) -> HttpResponse:
    _page(request)
    for _ in range(TRIES):
        # A page takes no lock, so what was picked may have been destroyed when it is looked for.
        with suppress(Http404):
            return views.post_show(request, Post.objects.pick_key())
    raise Http404("no post stays")


ENDPOINTS: Mapping[str, Callable[[HttpRequest], HttpResponse]] = {
    "post_create": _post_create,
    "comment_create": lambda request: _of_any(
        views.comment_create, _form(request, body=TEXT), Post.objects
    ),
    "post_destroy": lambda request: _of_any(views.post_destroy, request, Post.objects),
    "comment_destroy": lambda request: _of_any(views.comment_destroy, request, Comment.objects),
    "post_show": _post_show,
    "posts_index": lambda request: views.posts_index(_page(request)),
    "user_show": lambda request: views.user_show(_page(request), User.objects.pick().screen_name),
}


def _insert() -> HttpResponse:
    # Of the first user, on the first post: both are there, and nothing is asked for.
    Comment.objects.create(user_id=1, post_id=1, body=TEXT)
    return views.changed(HttpResponse(status=201), "comments+1")


@csrf_exempt
@require_POST
def benchmark(request: HttpRequest, mix: str) -> HttpResponse:
    """Do one of the seven things, picked by the weights of the mix."""
    if mix == SINGLE_INSERT:
        request.endpoint = mix
        response = _insert()
    elif mix in MIXES:
        request.endpoint = pick_endpoint(mix)
        response = _done(request)
    else:
        known = ", ".join((*MIXES, SINGLE_INSERT))
        raise Http404(f"there is no mix {mix!r}; there are {known}")
    response[ENDPOINT] = request.endpoint
    return response


@views.visited
def _done(request: HttpRequest) -> HttpResponse:
    return ENDPOINTS[request.endpoint](request)
