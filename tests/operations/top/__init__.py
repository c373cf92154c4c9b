"""``oxlite top``: real processes read and write, and what is seen of them."""
