"""What people fill in. A form looks in the database before anything is written."""

from django import forms

from oxlite.bench.workloads.web.blog.models import Comment, Post


class PostForm(forms.ModelForm):
    """A new post; its title must be nobody else's."""

    class Meta:
        """The model and what of it is asked for."""

        model = Post
        fields = ("title", "body")
        widgets = {"body": forms.Textarea(attrs={"rows": 6})}


class CommentForm(forms.ModelForm):
    """A new comment."""

    class Meta:
        """The model and what of it is asked for."""

        model = Comment
        fields = ("body",)
        widgets = {"body": forms.Textarea(attrs={"rows": 3})}
