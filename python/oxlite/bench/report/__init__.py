"""Reports: what a person sees of a run, while it lasts (``progress``) and after.

``facts`` has the sentences, ``charts`` what is drawn; ``terminal``, ``markdown`` and
``html`` are the forms. Only
``progress`` and ``terminal`` know the terminal library; worker processes never
load it.
"""
