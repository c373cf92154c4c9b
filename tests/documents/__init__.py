"""The pages for users, and what plays them: see ``page.py`` and ``session.py``."""
