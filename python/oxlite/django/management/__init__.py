"""What ``oxlite.django`` adds to ``manage.py``, where it is in INSTALLED_APPS."""
