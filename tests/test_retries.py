"""``oxlite.retry``: what is run again, how often, and what is not."""

import asyncio
from pathlib import Path

import pytest

import oxlite


class _Unsteady:
    """Raises as often as it is told to, then answers."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self, answer: int, *, extra: int = 0) -> int:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error or oxlite.StaleSnapshotError("stale")
        return answer + extra

    async def soon(self, answer: int, *, extra: int = 0) -> int:
        await asyncio.sleep(0)
        return self(answer, extra=extra)


class _WrappedError(Exception):
    """As SQLAlchemy wraps an error."""

    def __init__(self, orig: BaseException) -> None:
        self.orig = orig


def caused() -> Exception:
    error = RuntimeError("the outer one")
    error.__cause__ = _WrappedError(oxlite.StaleSnapshotError("stale"))
    return error


@pytest.mark.parametrize(
    "error",
    [oxlite.StaleSnapshotError("x"), _WrappedError(oxlite.StaleSnapshotError("x")), caused()],
)
def test_a_stale_snapshot_is_a_reason_also_inside_other_errors(error: Exception) -> None:
    unsteady = _Unsteady(3, error)
    assert oxlite.retry(unsteady)(40, extra=2) == 42
    assert unsteady.calls == 4


@pytest.mark.parametrize(
    "error",
    [
        oxlite.LockedError("locked"),
        oxlite.CommitOutcomeUnknown("unknown"),
        ValueError("x"),
        KeyboardInterrupt(),
        _WrappedError(oxlite.LockedError("locked")),
    ],
)
def test_nothing_else_is_a_reason(error: BaseException) -> None:
    unsteady = _Unsteady(1, error)
    with pytest.raises(type(error)):
        oxlite.retry(unsteady)(1)
    assert unsteady.calls == 1


def test_causes_in_a_circle_end() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    with pytest.raises(RuntimeError, match="one"):
        oxlite.retry(_Unsteady(1, one))(1)


def test_it_gives_up_and_says_so() -> None:
    unsteady = _Unsteady(9)
    with pytest.raises(oxlite.StaleSnapshotError) as caught:
        oxlite.retry(attempts=3, first_delay=0)(unsteady)(1)
    assert unsteady.calls == 3
    assert caught.value.__notes__ == ["The snapshot was stale 3 times; oxlite.retry gave up."]


def test_one_attempt_is_none_again() -> None:
    unsteady = _Unsteady(1)
    with pytest.raises(oxlite.StaleSnapshotError) as caught:
        oxlite.retry(attempts=1)(unsteady)(1)
    assert not hasattr(caught.value, "__notes__")


def test_coroutine_functions() -> None:
    unsteady = _Unsteady(2)
    assert asyncio.run(oxlite.retry(unsteady.soon)(40, extra=2)) == 42
    failing = _Unsteady(9)
    with pytest.raises(oxlite.StaleSnapshotError):
        asyncio.run(oxlite.retry(attempts=2)(failing.soon)(1))
    assert failing.calls == 2


def test_the_function_keeps_its_name() -> None:
    @oxlite.retry
    def transfer() -> None:
        """Move money."""

    assert (transfer.__name__, transfer.__doc__) == ("transfer", "Move money.")


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="attempts must be at least 1, not 0"):
        oxlite.retry(attempts=0)
    with pytest.raises(ValueError, match="must not be negative"):
        oxlite.retry(first_delay=-1)
    with pytest.raises(TypeError, match="wants a function, not int"):
        oxlite.retry(5)  # type: ignore[call-overload]

    def rows() -> object:
        yield 1

    async def later() -> object:
        yield 1

    for generator in (rows, later):
        with pytest.raises(TypeError, match="it is a generator"):
            oxlite.retry(generator)


def test_two_transactions_that_read_and_then_write(tmp_path: Path) -> None:
    one, two = (oxlite.connect(tmp_path / "app.db", isolation_level=None) for _ in range(2))
    one.execute("CREATE TABLE account (balance)")
    one.execute("INSERT INTO account VALUES (100)")
    met = []

    @oxlite.retry
    def withdraw() -> None:
        one.execute("BEGIN")
        try:
            (balance,) = one.execute("SELECT balance FROM account").fetchone()
            if not met:
                met.append(two.execute("UPDATE account SET balance = 50"))
            one.execute("UPDATE account SET balance = ?", (balance - 10,))
            one.execute("COMMIT")
        except BaseException:
            one.execute("ROLLBACK")
            raise

    withdraw()
    assert two.execute("SELECT balance FROM account").fetchone() == (40,)


def test_a_group_of_stale_snapshots_is_a_reason_and_a_mixed_one_is_not() -> None:
    stale = oxlite.StaleSnapshotError("stale")
    group = ExceptionGroup("tasks", [stale, ExceptionGroup("inner", [_WrappedError(stale)])])
    assert oxlite.retry(_Unsteady(2, group), first_delay=0)(1) == 1
    mixed = _Unsteady(1, ExceptionGroup("tasks", [stale, ValueError()]))
    with pytest.raises(ExceptionGroup, match="tasks"):
        oxlite.retry(mixed, first_delay=0)(1)
    assert mixed.calls == 1


def test_a_task_group() -> None:
    work = _Unsteady(2)

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work.soon(1))

    asyncio.run(oxlite.retry(first_delay=0)(together)())
    assert work.calls == 3


def test_an_object_that_is_called_as_a_coroutine_function() -> None:
    class Work:
        calls = 0

        async def __call__(self) -> int:
            self.calls += 1
            if self.calls < 3:
                raise oxlite.StaleSnapshotError("stale")
            return self.calls

    assert asyncio.run(oxlite.retry(Work(), first_delay=0)()) == 3


def test_what_answers_something_to_be_awaited_is_refused() -> None:
    work = _Unsteady(0)

    def begin() -> object:
        return work.soon(1)

    with pytest.raises(TypeError, match=r"begin again: it has answered a coroutine.*async def"):
        oxlite.retry(begin)()
    assert work.calls == 0
