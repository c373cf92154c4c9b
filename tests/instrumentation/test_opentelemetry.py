"""OpenTelemetry's instrumentors, wrapped around the function that the guide names."""

import pytest
from tests.instrumentation.doors import (
    ASYNC_ENGINE,
    DRIVER,
    ENGINE,
    POOLS,
    SITE,
    Blocks,
    Instrumented,
)

PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
def told():
    spans = [span.name.split(" ")[0] for span in exporter.get_finished_spans()]
    exporter.clear()
    return spans
"""

# The instrumentor compares versions, and 0.66 says that it is for SQLAlchemy before 2.1.
SQLALCHEMY = """
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
SQLAlchemyInstrumentor().instrument(skip_dep_check=True)
"""


@pytest.fixture(params=["before", "after"])
def wrapped(request: pytest.FixtureRequest, guide: Blocks) -> str:
    """The guide's first program, before or after the doors are imported."""
    wrap = guide["OpenTelemetry"][0]
    assert "wrap_connect" in wrap
    imports = "import oxlite, oxlite.aio, oxlite.sqlalchemy\n"
    return PROVIDER + (wrap if request.param == "before" else imports + wrap)


def test_connections(instrumented: Instrumented, wrapped: str) -> None:
    found = instrumented(wrapped, DRIVER)
    assert found == {"connect": ["CREATE", "INSERT", "DELETE"], "drop-in": ["SELECT"]}


def test_an_engine_by_the_wrapped_connect(instrumented: Instrumented, wrapped: str) -> None:
    found = instrumented(wrapped, ENGINE)
    assert found["engine"][:2] == ["CREATE", "INSERT"]
    assert found["engine"].count("UPDATE") == 4
    assert found["engines"] == ["SELECT"]
    assert found["rows"] == [["c"], ["c"]]
    assert found["tables"] == ["note"]
    assert [level for level, *_ in found["levels"]] == [
        "SNAPSHOT",
        "SERIALIZABLE",
        "AUTOCOMMIT",
        "READ COMMITTED",
    ]
    assert not any(left_open for *_, left_open in found["levels"])
    assert "sqlite_read_only is True" in found["refusal"]


def test_engines_by_sqlalchemys_instrumentor(instrumented: Instrumented) -> None:
    pytest.importorskip("opentelemetry.instrumentation.sqlalchemy")
    found = instrumented(PROVIDER, "import oxlite.sqlalchemy", SQLALCHEMY, ENGINE, ASYNC_ENGINE)
    assert found["engine"].count("UPDATE") == 4
    assert found["engines"] == ["connect", "SELECT"]
    assert found["async engine"] == ["connect", "SELECT"]


def test_an_engine_for_an_event_loop_works_where_connect_is_wrapped(
    instrumented: Instrumented, wrapped: str
) -> None:
    found = instrumented(wrapped, ASYNC_ENGINE)
    assert found == {"one": 1, "async engine": []}


def test_databases_work_where_connect_is_wrapped(instrumented: Instrumented, wrapped: str) -> None:
    found = instrumented(wrapped, POOLS)
    assert found["one"] == [3]
    assert found["gathered"] == [[3]] * 3
    assert found["entered"] == [1]


def test_databases_by_their_methods(instrumented: Instrumented, guide: Blocks) -> None:
    (recipe,) = guide["Database, and asyncio"]
    found = instrumented(PROVIDER, recipe, POOLS)
    assert found["Database"] == [
        "CREATE",
        "INSERT",
        "INSERT",
        "SELECT",
        "SELECT",
        "Database.write",
    ]
    assert found["aio.Database"] == [
        "INSERT",
        *["SELECT"] * 3,
        *["BEGIN", "UPDATE"],  # inside write()
    ]
    assert found["aio.connect"] == ["SELECT", "SELECT"]
    assert found["all"] == [["a"], ["b"], ["c"]]
    assert found["gathered"] == [[3]] * 3
    assert found["entered"] == [1]


def test_a_site(instrumented: Instrumented, wrapped: str) -> None:
    pytest.importorskip("django")
    found = instrumented(wrapped, SITE)
    assert found["site"] == ["BEGIN", "INSERT", "BEGIN", "SELECT", "SELECT", "SELECT"]
    assert found["names"] == found["streamed"] == ["a"]
    assert found["worker"] == 0
    assert found["clone"] is True
