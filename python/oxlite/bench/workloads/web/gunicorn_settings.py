"""Gunicorn's settings for the lab; the file that ``gunicorn --config`` names.

Each answer is a line of the access log, so that the server has an account of what it has done.
Requests come one to a connection. A worker ends with the server, and the server with the lab.
"""

from oxlite.bench.harness.bootstrap import die_with_parent
from oxlite.bench.workloads.web.server import ACCESS_LOG_FORMAT

access_log_format = ACCESS_LOG_FORMAT
keepalive = 0
worker_class = "gthread"
proc_name = "oxlite-bench-web"
graceful_timeout = 60
# Of Gunicorn 25 and later: nobody talks to this server but the lab.
control_socket_disable = True


def post_fork(server: object, worker: object) -> None:
    """A worker has been forked."""
    die_with_parent()
