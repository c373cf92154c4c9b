"""Threads that each live the same life, all at once or one after the other."""

import threading
from collections.abc import Callable


def run_threads(threads: int, live: Callable[[int], int], *, one_by_one: bool) -> int:
    """What ``live`` counts, over all threads.

    Args:
        threads: how many.
        live: what each does, given its number.
        one_by_one: whether each is waited for before the next is started, as in the published
            benchmark; else all begin together.

    Raises:
        Exception: what a thread has raised, the first of several.
    """
    barrier = threading.Barrier(1 if one_by_one else threads)
    counts: list[int] = []
    errors: list[BaseException] = []

    def run(thread: int) -> None:
        try:
            barrier.wait()
            counts.append(live(thread))
        except BaseException as error:
            errors.append(error)

    every = [threading.Thread(target=run, args=(one,)) for one in range(threads)]
    for thread in every:
        thread.start()
        if one_by_one:
            thread.join()
    for thread in every:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts)
