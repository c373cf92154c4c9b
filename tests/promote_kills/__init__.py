"""Promotions that are killed on either side, beside writers; see ``__main__``."""
