"""Everything is killed that writes and replicates; each replica is a prefix of what was written.

``python -m tests.replica_kills`` (``make replica-kills``) does that until there were as many cycles
as one likes, by turns to a directory and to a local server that speaks S3.

- ``ledger``: what is written and acknowledged, and whether what is restored is a prefix of it.
- ``writers``: the program of those who write.
- ``crowd``: processes that are found and killed, whoever has begun them.
- ``s3``: the server, and the relay before it (``relay``) that is killed.
- ``campaign``: the cycles.
"""
