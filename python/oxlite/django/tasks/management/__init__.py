"""``manage.py oxlite_worker``."""
