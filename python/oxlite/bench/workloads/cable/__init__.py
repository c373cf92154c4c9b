"""``cable``: how soon, and how surely, what one WebSocket client says reaches the others.

``work`` has the parameters and the messages, ``layers`` what Django is told of each channel layer,
``site`` is the ASGI application, ``server`` runs it, ``clients`` is the process of the WebSockets,
``members`` are processes that wait without a server. ``figures`` accounts for every message and
reduces what was measured, ``claims`` judges, ``tables`` is what a report shows, and ``workload``
ties these together.
"""
