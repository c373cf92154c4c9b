"""The site for a server that speaks WSGI: ``application()`` makes it, as the environment says.

``POST /benchmark/<mix>`` does one of the seven things, and says in the header ``Blog-Endpoint``
which. What is asked for by its own address is a page.

Invariant: a request has one session, and has left it before it is answered.
"""

import os
from collections.abc import Callable, Mapping

from flask import Flask, Response, abort, g, make_response, render_template
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session
from werkzeug.exceptions import InternalServerError

from oxlite.bench.workloads.web.headers import ENDPOINT, FAILURE, failure
from oxlite.bench.workloads.web.mixes import MIXES, SINGLE_INSERT, pick_endpoint
from oxlite.bench.workloads.web.pooled import deeds, pages
from oxlite.bench.workloads.web.pooled.models import User
from oxlite.bench.workloads.web.pooled.pools import Pools, pools_of

ENDPOINTS: Mapping[str, Callable[[Session, User], ResponseReturnValue]] = {
    "post_create": deeds.post_create,
    "comment_create": deeds.comment_create,
    "post_destroy": deeds.post_destroy,
    "comment_destroy": deeds.comment_destroy,
    "post_show": lambda session, _: pages.any_post_show(session),
    "posts_index": lambda session, _: pages.posts_index(session),
    "user_show": lambda session, _: pages.any_user_show(session),
}


def application(pools: Pools | None = None) -> Flask:
    """The site on these pools, or on those of the environment."""
    site = Flask(__name__)
    used = pools or pools_of(os.environ)

    def visited(view: Callable[[Session, User], ResponseReturnValue]) -> Response:
        with used.session() as session:
            visitor = deeds.visit(session)
            # The name alone: a ROLLBACK forgets the rest, and the page of a failure is after one.
            g.visitor = visitor.screen_name
            return make_response(view(session, visitor))

    @site.get("/")
    def posts_index() -> Response:
        return visited(lambda session, _: pages.posts_index(session))

    @site.get("/posts/<int:key>/")
    def post_show(key: int) -> Response:
        return visited(lambda session, _: pages.post_show(session, key) or abort(404))

    @site.get("/users/<screen_name>/")
    def user_show(screen_name: str) -> Response:
        return visited(lambda session, _: pages.user_show(session, screen_name))

    @site.post("/benchmark/<mix>")
    def benchmark(mix: str) -> Response:
        if mix == SINGLE_INSERT:
            g.endpoint = mix
            with used.in_autocommit() as session:
                response = make_response(deeds.insert(session))
        elif mix in MIXES:
            g.endpoint = pick_endpoint(mix)
            response = visited(ENDPOINTS[g.endpoint])
        else:
            known = ", ".join((*MIXES, SINGLE_INSERT))
            abort(404, f"there is no mix {mix!r}; there are {known}")
        response.headers[ENDPOINT] = g.endpoint
        return response

    @site.errorhandler(InternalServerError)
    def failed(error: InternalServerError) -> Response:
        """People are told no details, and a load generator the kind."""
        response = make_response(render_template("failed.html"), 500)
        if "endpoint" in g:
            response.headers[ENDPOINT] = g.endpoint
            # SQLAlchemy's own would have the statement and its values: each would be another kind.
            cause = error.original_exception
            response.headers[FAILURE] = failure(getattr(cause, "orig", None) or cause)
        return response

    return site
