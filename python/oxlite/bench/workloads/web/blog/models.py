"""Users, posts and comments. Foreign keys have indexes, as Django makes them."""

import random

from django.db import models


class Picking(models.QuerySet):
    """Rows of which one can be picked."""

    def pick_key(self) -> int:
        """The key of any row, at random, without sorting all of them; 0 if there is none."""
        keys = self.values_list("pk", flat=True)
        latest = keys.order_by("-pk").first()
        if latest is None:
            return 0
        return keys.filter(pk__gte=random.randint(1, latest)).order_by("pk").first() or 0

    def pick(self) -> models.Model:
        """Any row, at random.

        Raises:
            DoesNotExist: there is none.
        """
        return self.get(pk=self.pick_key())


class User(models.Model):
    """Somebody who writes."""

    screen_name = models.CharField(max_length=60, unique=True)
    about = models.TextField(blank=True)
    joined_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True)

    objects = Picking.as_manager()

    def __str__(self) -> str:
        """The name that others see."""
        return self.screen_name


class Post(models.Model):
    """What a user has written."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="posts")
    title = models.CharField(max_length=160, unique=True)
    body = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = Picking.as_manager()

    def __str__(self) -> str:
        """The title."""
        return self.title


class Comment(models.Model):
    """What a user has to say about a post."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="comments")
    post = models.ForeignKey(Post, on_delete=models.CASCADE, related_name="comments")
    body = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = Picking.as_manager()

    def __str__(self) -> str:
        """Its beginning."""
        return self.body[:60]
