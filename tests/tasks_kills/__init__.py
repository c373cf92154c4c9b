"""Those who enqueue tasks and those who run them are killed; nothing is lost, nothing done twice.

``python -m tests.tasks_kills`` (``make tasks-kills``) kills, stops and ends them at random moments
until as many have been killed and as many tasks enqueued as one likes.

- ``application``: the tasks, and the table in which each attempt leaves a row.
- ``enqueuers`` and ``workers``: what the processes do that are killed.
- ``crew``: processes that are forked, killed, stopped, and judged by how they end.
- ``timeline``: who lived when, and how soon others had what a killed one left.
- ``judge``: what must be in the file when all has come to rest.
- ``campaign``: the rounds; ``tally``: what was done in them.
"""
