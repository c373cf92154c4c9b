"""How fast a promotion is, beside COPY by hand and pgloader; see ``__main__``."""
