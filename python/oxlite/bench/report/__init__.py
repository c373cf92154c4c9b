"""Reports: what a person sees of a run, while it lasts (``progress``) and after (``terminal``).

Only this package knows the terminal library; worker processes never load it.
"""
