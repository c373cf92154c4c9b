"""Nested ``atomic()`` of two aliases of one file: the thread would wait for itself."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Site

TWO_ALIASES = """
DATABASES["default"]["OPTIONS"]["timeout"] = 1000
DATABASES["other"] = {**DATABASES["default"]}
"""


def test_a_nested_atomic_of_another_alias_is_refused_at_once(site: "Site") -> None:
    site.set(TWO_ALIASES)
    said = site.run("""
try:
    with transaction.atomic():
        Note.objects.create(text="a")
        with transaction.atomic(using="other"):
            raise AssertionError
except OperationalError as error:
    print("through another connection" in str(error), "commit it first" in str(error))
with transaction.atomic(using="other"):
    Note.objects.using("other").create(text="b")
print(Note.objects.count())
""")
    assert said.splitlines() == ["True True", "1"]


def test_a_connection_that_threads_share_is_waited_for(site: "Site") -> None:
    """Another thread may end its transaction."""
    site.set(TWO_ALIASES)
    said = site.run("""
connection.set_autocommit(False)
Note.objects.create(text="a")
connection.inc_thread_sharing()

shared = connections["default"]

def end():
    while not shared.connection.queue_statistics()["waiting"]:
        time.sleep(0.001)
    shared.commit()

thread = threading.Thread(target=end)
thread.start()
with transaction.atomic(using="other"):
    Note.objects.using("other").create(text="b")
thread.join()
shared.set_autocommit(True)
shared.dec_thread_sharing()
print(Note.objects.count())
""")
    assert said.splitlines() == ["2"]
