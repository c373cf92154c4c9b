"""``oxlite doctor``: a zoo of sick databases, and healthy ones of many programs."""
