"""Elastic's agent, given the module that the guide names."""

import pytest
from tests.instrumentation.doors import DRIVER, ENGINE, POOLS, SITE, Blocks, Instrumented

AGENT = """
import elasticapm
agent = elasticapm.Client(
    {"DISABLE_SEND": True, "CENTRAL_CONFIG": False, "CLOUD_PROVIDER": "none", "SERVICE_NAME": "a"}
)
spans = []
def told():
    agent.end_transaction("told")
    names = [name.split(" ")[0] for name in spans]
    spans.clear()
    agent.begin_transaction("program")
    return names
def keep(kind, data, flush=False):
    if kind == "span":
        spans.append(data["name"])
agent.tracer.queue_func = keep
elasticapm.instrument()
told()
"""

OPENED = "oxlite.sqlite3.connect"


@pytest.fixture
def agent(guide: Blocks) -> str:
    """The guide's program, and an agent that keeps what it would send."""
    (register,) = guide["Elastic APM"]
    return "import oxlite, oxlite.aio, oxlite.sqlalchemy\n" + register + AGENT


def test_connections(instrumented: Instrumented, agent: str) -> None:
    found = instrumented(agent, DRIVER)
    assert found["connect"] == [OPENED, "CREATE", "INSERT", "DELETE"]
    assert found["drop-in"] == [OPENED, "SELECT"]


def test_an_engine(instrumented: Instrumented, agent: str) -> None:
    found = instrumented(agent, ENGINE)
    # The agent makes one span of those that follow one another and are alike.
    assert {"CREATE", "INSERT", "UPDATE", "SELECT"} <= set(found["engine"])
    assert found["engines"][-1] == "SELECT"
    assert found["rows"] == [["c"], ["c"]]
    assert not any(left_open for *_, left_open in found["levels"])


def test_databases_work(instrumented: Instrumented, agent: str) -> None:
    found = instrumented(agent, POOLS)
    assert found["one"] == [3]
    assert found["gathered"] == [[3]] * 3
    assert OPENED in found["Database"], "the wrapped function was asked"


def test_a_site(instrumented: Instrumented, agent: str) -> None:
    pytest.importorskip("django")
    found = instrumented(agent, SITE)
    assert found["site"].count("INSERT") == 1
    assert found["site"].count("SELECT") >= 2
    assert found["worker"] == 0
    assert found["clone"] is True
