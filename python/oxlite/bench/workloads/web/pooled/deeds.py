"""What changes rows: the visit that each request begins with, and the four deeds.

Each is one transaction, which has the lock from its first statement on, as Django's begin
IMMEDIATE. So what is looked at stays as it is until it is written.

Invariant: a deed that has changed something says in the header ``Blog-Changed`` by how many rows.
"""

import secrets

from flask import abort, redirect
from sqlalchemy import delete, select
from sqlalchemy.orm import Session, joinedload
from werkzeug.wrappers import Response

from oxlite.bench.workloads.web.headers import CHANGED
from oxlite.bench.workloads.web.mixes import TEXT
from oxlite.bench.workloads.web.pooled.models import Comment, Post, User, now
from oxlite.bench.workloads.web.pooled.random_keys import pick_key


def visit(session: Session) -> User:
    """Somebody is any of the users, and is seen from now on."""
    with session.begin():
        key = pick_key(session, User, to_write=True)
        visitor = session.scalars(select(User).where(User.id == key)).one()
        visitor.last_seen_at = now()
    return visitor


def _changed(address: str, what: str) -> Response:
    response = redirect(address)
    response.headers[CHANGED] = what
    return response


def post_create(session: Session, visitor: User) -> Response:
    """Write a post."""
    title = f"A post called {secrets.token_hex(12)}"
    with session.begin():
        # A form looks whether the title is somebody else's; nobody takes it before it is written.
        same = select(Post.id).where(Post.title == title).limit(1).with_for_update()
        if session.scalar(same) is not None:
            abort(422)
        post = Post(user_id=visitor.id, title=title, body=TEXT)
        session.add(post)
    return _changed(f"/posts/{post.id}/", "posts+1")


def comment_create(session: Session, visitor: User) -> Response:
    """Comment on any post."""
    with session.begin():
        key = pick_key(session, Post, to_write=True)
        with_author = select(Post).options(joinedload(Post.user, innerjoin=True))
        post = session.scalar(with_author.where(Post.id == key))
        if post is None:
            abort(404)
        comment = Comment(user_id=visitor.id, post_id=post.id, body=TEXT)
        session.add(comment)
    return _changed(f"/posts/{post.id}/#comment-{comment.id}", "comments+1")


def post_destroy(session: Session, visitor: User) -> Response:
    """Destroy any post, with its comments."""
    with session.begin():
        post = session.get(Post, pick_key(session, Post, to_write=True))
        if post is None:
            abort(404)
        its = delete(Comment).where(Comment.post_id == post.id)
        comments = session.connection().execute(its).rowcount
        session.delete(post)
    return _changed("/", f"posts-1 comments-{comments}")


def comment_destroy(session: Session, visitor: User) -> Response:
    """Destroy any comment."""
    with session.begin():
        comment = session.get(Comment, pick_key(session, Comment, to_write=True))
        if comment is None:
            abort(404)
        session.delete(comment)
    return _changed(f"/posts/{comment.post_id}/", "comments-1")


def insert(session: Session) -> Response:
    """One INSERT: by the first user, on the first post, which are there. Nothing is asked for."""
    session.add(Comment(user_id=1, post_id=1, body=TEXT))
    session.commit()
    return Response(status=201, headers={CHANGED: "comments+1"})
