"""Those who write, back up and restore are killed; each backup is a prefix of what was written.

``python -m tests.backup_kills`` (``make backup-kills``) does that until there were as many cycles
as one likes.

- ``processes``: what is done by those who are killed.
- ``ledger``: what is written, and whether what is found is a prefix of it.
- ``campaign``: the cycles.
"""
