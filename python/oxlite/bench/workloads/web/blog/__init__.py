"""The blog that ``web`` puts under load: a Django project of the usual kind.

Users write posts and comments, and can destroy both. ``views`` has the pages and deeds, with
transactions that read before they write; ``benchmark`` picks one of them for each request of a load
generator. ``settings`` takes the database from the environment. ``examples/django_blog`` shows how
to run it by hand.

Invariant: nothing here knows the lab, nor which backend it runs on.
"""
