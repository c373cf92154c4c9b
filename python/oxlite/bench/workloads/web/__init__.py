"""``web``: a Django site under load. ``blog`` is the site."""
