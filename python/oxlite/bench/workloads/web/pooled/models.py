"""Users, posts and comments, in the tables that Django has made.

Times are in UTC without saying so, as Django keeps them in SQLite.
"""

from datetime import UTC, datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


def now() -> datetime:
    """This moment, as the tables have it."""
    return datetime.now(UTC).replace(tzinfo=None)


class Base(DeclarativeBase):
    """Of all tables."""

    id: Mapped[int] = mapped_column(primary_key=True)


class User(Base):
    """Somebody who writes."""

    __tablename__ = "blog_user"

    screen_name: Mapped[str]
    about: Mapped[str]
    joined_at: Mapped[datetime] = mapped_column(default=now)
    last_seen_at: Mapped[datetime | None]


class Post(Base):
    """What a user has written."""

    __tablename__ = "blog_post"

    user_id: Mapped[int] = mapped_column(ForeignKey(User.id))
    title: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(default=now)
    user: Mapped[User] = relationship()


class Comment(Base):
    """What a user has to say about a post."""

    __tablename__ = "blog_comment"

    user_id: Mapped[int] = mapped_column(ForeignKey(User.id))
    post_id: Mapped[int] = mapped_column(ForeignKey(Post.id))
    body: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(default=now)
    user: Mapped[User] = relationship()
    post: Mapped[Post] = relationship()
