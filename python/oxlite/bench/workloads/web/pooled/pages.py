"""The three pages: what each loads is what the same page of ``blog`` does.

They are made outside of a transaction that writes, so with pools that are isolated they are read on
a connection that cannot.
"""

from flask import abort, render_template
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload
from werkzeug.exceptions import NotFound

from oxlite.bench.workloads.web.mixes import TRIES
from oxlite.bench.workloads.web.pooled.models import Comment, Post, User
from oxlite.bench.workloads.web.pooled.random_keys import pick_key

LISTED = 100
LISTED_COMMENTS = 20


def posts_index(session: Session) -> str:
    """The latest hundred posts."""
    posts = session.scalars(
        select(Post)
        .options(joinedload(Post.user, innerjoin=True))
        .order_by(Post.id.desc())
        .limit(LISTED)
    ).all()
    return render_template("posts.html", posts=posts)


def post_show(session: Session, key: int) -> str | None:
    """A post and its comments; ``None`` if it is not there."""
    with_author = select(Post).options(joinedload(Post.user, innerjoin=True))
    post = session.scalar(with_author.where(Post.id == key))
    if post is None:
        return None
    comments = session.scalars(
        select(Comment)
        .options(joinedload(Comment.user, innerjoin=True))
        .where(Comment.post_id == key)
        .order_by(Comment.id)
    ).all()
    return render_template("post.html", post=post, comments=comments)


def any_post_show(session: Session) -> str:
    """Any post; it may be destroyed after it was picked, and then it is another."""
    for _ in range(TRIES):
        page = post_show(session, pick_key(session, Post))
        if page is not None:
            return page
    raise NotFound("no post stays")


def user_show(session: Session, screen_name: str) -> str:
    """A user, with the latest that he or she has written."""
    user = session.scalar(select(User).where(User.screen_name == screen_name))
    if user is None:
        abort(404)
    posts = session.scalars(
        select(Post).where(Post.user_id == user.id).order_by(Post.id.desc()).limit(LISTED)
    ).all()
    comments = session.scalars(
        select(Comment)
        .options(joinedload(Comment.post, innerjoin=True))
        .where(Comment.user_id == user.id)
        .order_by(Comment.id.desc())
        .limit(LISTED_COMMENTS)
    ).all()
    return render_template("user.html", shown=user, posts=posts, comments=comments)


def any_user_show(session: Session) -> str:
    """Any user."""
    picked = session.scalars(select(User).where(User.id == pick_key(session, User))).one()
    return user_show(session, picked.screen_name)
