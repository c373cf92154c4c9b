"""``oxlite.tasks``: what is enqueued, who runs it, and what becomes of it when something ends."""
