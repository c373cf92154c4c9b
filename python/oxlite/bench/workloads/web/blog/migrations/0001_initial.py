"""The tables as they were first."""

from typing import Any

from django.db import migrations, models


def _table(name: str, **columns: "models.Field[Any, Any]") -> migrations.CreateModel:
    """A table with a key of its own."""
    key = models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )
    return migrations.CreateModel(name, [("id", key), *columns.items()])


def _belongs_to(model: str, named: str) -> "models.Field[Any, Any]":
    """A row of another table, which has those that belong to it by the name ``named``."""
    return models.ForeignKey(model, models.CASCADE, related_name=named)


class Migration(migrations.Migration):
    """Users, posts and comments."""

    initial = True

    operations = [
        _table(
            "User",
            screen_name=models.CharField(max_length=60, unique=True),
            about=models.TextField(blank=True),
            joined_at=models.DateTimeField(auto_now_add=True),
            last_seen_at=models.DateTimeField(null=True),
        ),
        _table(
            "Post",
            title=models.CharField(max_length=160, unique=True),
            body=models.TextField(),
            created_at=models.DateTimeField(auto_now_add=True),
            user=_belongs_to("blog.user", "posts"),
        ),
        _table(
            "Comment",
            body=models.TextField(),
            created_at=models.DateTimeField(auto_now_add=True),
            post=_belongs_to("blog.post", "comments"),
            user=_belongs_to("blog.user", "comments"),
        ),
    ]
