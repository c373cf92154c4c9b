"""``seed_blog``: fill an empty blog with users, posts and comments, the same for the same seed."""

import random
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from oxlite.bench.workloads.web.blog.models import Comment, Post, User

FEWEST_COMMENTS, MOST_COMMENTS = 5, 15

FIRST = (
    "Amina", "Bruno", "Chen", "Dalia", "Emeka", "Freya", "Goran", "Hana", "Ines", "Jonas",
)  # fmt: skip
LAST = (
    "Adeyemi", "Bakker", "Costa", "Dubois", "Endo", "Farah", "Gruber", "Haddad", "Ito", "Jensen",
)  # fmt: skip
SUBJECTS = (
    "bread", "rivers", "old maps", "bicycles", "the night train", "a garden in autumn", "chess",
    "lighthouses", "soup", "rain", "small boats", "radio", "letters", "wooden bridges", "tea",
    "markets", "stars", "a walk uphill", "the harbour", "clocks",
)  # fmt: skip
OPENINGS = (
    "What I learned from", "In praise of", "A short history of", "Against", "Notes about",
    "Seven questions about", "The quiet life of", "How to begin with", "A year of", "Thinking of",
)  # fmt: skip
SENTENCES = (
    "It began with a mistake that nobody noticed.",
    "My neighbour says that it was always so, and she should know.",
    "There is more to it than one sees from the street.",
    "I tried it twice, and the second time it worked.",
    "The best part is the hour before everybody else is awake.",
    "One needs less than one thinks: a table, some light, and patience.",
    "Nobody could tell me why, so I looked for myself.",
    "What surprised me most was how long it lasts when it is looked after.",
    "I have written down what it cost, because people ask.",
    "If you have done the same, tell me how it went.",
)
REMARKS = (
    "I remember it differently, but I like yours better.",
    "Thank you, this is what I was looking for.",
    "Have you tried it in winter?",
    "My grandmother did exactly that.",
    "I am not sure about the second paragraph.",
    "More of this, please.",
    "We did the same last year, and it rained.",
    "Where can one see it?",
)


class Command(BaseCommand):
    """See the module."""

    help = "Fill an empty blog with users, posts and comments."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options."""
        parser.add_argument("--seed", type=int, default=1, help="of all that is random")
        parser.add_argument("--users", type=int, default=100)
        parser.add_argument("--posts", type=int, default=1000)

    @transaction.atomic
    def handle(self, *arguments: object, **options: int) -> None:
        """Fill it.

        Raises:
            CommandError: there is something in it, or nobody would write the posts.
        """
        if User.objects.exists():
            raise CommandError("the blog has users: seed_blog is for an empty one")
        if options["users"] < 1 or options["posts"] < 0:
            raise CommandError("--users must be at least 1, and --posts at least 0")
        source = random.Random(options["seed"])
        users = User.objects.bulk_create(
            User(screen_name=_name(number), about=source.choice(SENTENCES))
            for number in range(options["users"])
        )
        posts = Post.objects.bulk_create(
            Post(
                user=source.choice(users),
                title=f"{source.choice(OPENINGS)} {source.choice(SUBJECTS)}, no. {number + 1}",
                body=_paragraphs(source),
            )
            for number in range(options["posts"])
        )
        comments = Comment.objects.bulk_create(
            Comment(user=source.choice(users), post=post, body=source.choice(REMARKS))
            for post in posts
            for _ in range(source.randint(FEWEST_COMMENTS, MOST_COMMENTS))
        )
        self.stdout.write(f"{len(users)} users, {len(posts)} posts, {len(comments)} comments")


def _name(number: int) -> str:
    first, last = number % len(FIRST), number // len(FIRST) % len(LAST)
    again = number // (len(FIRST) * len(LAST))
    return f"{FIRST[first]} {LAST[last]}" + (f" {again + 1}" if again else "")


def _paragraphs(source: random.Random) -> str:
    return "\n\n".join(
        " ".join(source.choice(SENTENCES) for _ in range(source.randint(2, 5)))
        for _ in range(source.randint(2, 4))
    )
