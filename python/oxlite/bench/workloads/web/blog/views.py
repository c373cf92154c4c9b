"""The seven pages and deeds of the blog.

Each begins with a visitor, who is any of the users and is seen from now on: so every request reads
and then writes, in a transaction. So does every deed; pages are made outside of it.

Invariant: an answer that has changed something says in the header ``Blog-Changed`` by how many
rows.
"""

import sys
from collections.abc import Callable
from functools import wraps

from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from oxlite.bench.workloads.web.blog.models import Comment, Post, User
from oxlite.bench.workloads.web.headers import CHANGED, ENDPOINT, FAILURE, failure

LISTED = 100

# A form looks in the database before anything is written: a title must be nobody else's.
PostForm = forms.modelform_factory(
    Post, fields=("title", "body"), widgets={"body": forms.Textarea(attrs={"rows": 6})}
)
CommentForm = forms.modelform_factory(
    Comment, fields=("body",), widgets={"body": forms.Textarea(attrs={"rows": 3})}
)

View = Callable[..., HttpResponse]


def visited(view: View) -> View:
    """The view, for a visitor: ``request.visitor``."""

    @wraps(view)
    def for_visitor(request: HttpRequest, *arguments: object, **named: object) -> HttpResponse:
        if not hasattr(request, "visitor"):
            with transaction.atomic():
                visitor = User.objects.pick()
                visitor.last_seen_at = timezone.now()
                visitor.save(update_fields=["last_seen_at"])
            request.visitor = visitor
        return view(request, *arguments, **named)

    return for_visitor


def changed(response: HttpResponse, what: str) -> HttpResponse:
    """The answer, which says ``what`` has changed: ``posts-1 comments-8``."""
    response[CHANGED] = what
    return response


def _index(request: HttpRequest, form: forms.ModelForm, status: int = 200) -> HttpResponse:
    posts = Post.objects.select_related("user").order_by("-pk")[:LISTED]
    return render(request, "blog/posts.html", {"posts": posts, "form": form}, status=status)


def _post(
    request: HttpRequest, post: Post, form: forms.ModelForm, status: int = 200
) -> HttpResponse:
    comments = post.comments.select_related("user").order_by("pk")
    shown = {"post": post, "comments": comments, "form": form}
    return render(request, "blog/post.html", shown, status=status)


def _tell_author(comment: Comment) -> None:
    from oxlite.bench.workloads.web.blog.mails import tell_author  # where there are tasks

    tell_author.enqueue(comment.pk)


@require_GET
@visited
def posts_index(request: HttpRequest) -> HttpResponse:
    """The latest hundred posts."""
    return _index(request, PostForm())


@require_POST
@visited
def post_create(request: HttpRequest) -> HttpResponse:
    """Write a post."""
    form = PostForm(request.POST, instance=Post(user=request.visitor))
    with transaction.atomic():
        # Nobody takes the title between the looking and the writing.
        post = form.save() if form.is_valid() else None
    if post is None:
        return _index(request, form, status=422)
    return changed(redirect("post_show", post.pk), "posts+1")


@require_GET
@visited
def post_show(request: HttpRequest, pk: int) -> HttpResponse:
    """A post and its comments."""
    post = get_object_or_404(Post.objects.select_related("user"), pk=pk)
    return _post(request, post, CommentForm())


@require_POST
@visited
def post_destroy(request: HttpRequest, pk: int) -> HttpResponse:
    """Destroy a post, with its comments."""
    with transaction.atomic():
        _, rows = get_object_or_404(Post, pk=pk).delete()
    posts, comments = (rows.get(model._meta.label, 0) for model in (Post, Comment))
    return changed(redirect("posts_index"), f"posts-{posts} comments-{comments}")


@require_POST
@visited
def comment_create(request: HttpRequest, pk: int) -> HttpResponse:
    """Comment on a post."""
    with transaction.atomic():
        post = get_object_or_404(Post.objects.select_related("user"), pk=pk)
        form = CommentForm(request.POST, instance=Comment(user=request.visitor, post=post))
        comment = form.save() if form.is_valid() else None
        if comment is not None and settings.MAILS is not None:
            _tell_author(comment)
    if comment is None:
        return _post(request, post, form, status=422)
    return changed(redirect(f"/posts/{post.pk}/#comment-{comment.pk}"), "comments+1")


@require_POST
@visited
def comment_destroy(request: HttpRequest, pk: int) -> HttpResponse:
    """Destroy a comment."""
    with transaction.atomic():
        comment = get_object_or_404(Comment, pk=pk)
        rows, _ = comment.delete()
    return changed(redirect("post_show", comment.post_id), f"comments-{rows}")


@require_GET
@visited
def user_show(request: HttpRequest, screen_name: str) -> HttpResponse:
    """A user, with the latest that he or she has written."""
    user = get_object_or_404(User, screen_name=screen_name)
    posts = user.posts.order_by("-pk")[:LISTED]
    comments = user.comments.select_related("post").order_by("-pk")[:20]
    return render(request, "blog/user.html", {"shown": user, "posts": posts, "comments": comments})


def failed(request: HttpRequest) -> HttpResponse:
    """Something went wrong, of which people are told no details, and a load generator the kind."""
    response = render(request, "500.html", status=500)
    if hasattr(request, "endpoint"):
        response[ENDPOINT] = request.endpoint
        response[FAILURE] = failure(sys.exc_info()[1])
    return response
