"""The addresses of the blog."""

from django.urls import path

from oxlite.bench.workloads.web.blog import views
from oxlite.bench.workloads.web.blog.benchmark import benchmark

urlpatterns = [
    path("", views.posts_index, name="posts_index"),
    path("posts/", views.post_create, name="post_create"),
    path("posts/<int:pk>/", views.post_show, name="post_show"),
    path("posts/<int:pk>/destroy/", views.post_destroy, name="post_destroy"),
    path("posts/<int:pk>/comments/", views.comment_create, name="comment_create"),
    path("comments/<int:pk>/destroy/", views.comment_destroy, name="comment_destroy"),
    path("users/<str:screen_name>/", views.user_show, name="user_show"),
    path("benchmark/<str:mix>", benchmark, name="benchmark"),
]

handler500 = "oxlite.bench.workloads.web.blog.views.failed"
