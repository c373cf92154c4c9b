"""Mails of the blog, which a worker sends: ``manage.py oxlite_worker``.

Invariant: a mail is enqueued by the transaction that makes what it tells of.
"""

from django.core.mail import send_mail

from oxlite.bench.workloads.web.blog.models import Comment

try:
    from django.tasks import task
except ModuleNotFoundError:  # before Django 6.0
    from django_tasks import task

SENDER = "blog@example.org"


@task(retries=3)
def tell_author(comment_key: int) -> None:
    """Tell the author of a post that somebody has commented on it."""
    comments = Comment.objects.select_related("user", "post__user")
    comment = comments.filter(pk=comment_key).first()
    if comment is None:
        return  # it was destroyed meanwhile
    post = comment.post
    send_mail(
        f"{comment.user} has commented on {post.title!r}",
        comment.body,
        SENDER,
        [f"{post.user.screen_name}@example.org"],
    )
