"""Chapters that do wrong when something fails, to see that it is noticed."""

import os
from contextlib import suppress

from tests.faults.chapters import COUNT, some_items
from tests.faults.stage import Chapter, Stage, Steps

from oxlite import sqlite3

_KEPT: list[object] = []


def a_wrong_row(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    found: list[object] = [None]
    with suppress(MemoryError):
        found = connection.execute(COUNT).fetchall()
    yield found


def a_wrong_class(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    try:
        yield connection.execute(COUNT).fetchall()
    except MemoryError as error:
        raise SystemError(1) from error


def something_kept(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    try:
        yield connection.execute(COUNT).fetchall()
    except MemoryError:
        _KEPT.append(sqlite3.connect(":memory:"))
        raise


def a_descriptor_kept(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    try:
        yield connection.execute(COUNT).fetchall()
    except MemoryError:
        os.dup(0)
        raise


def half_a_transaction(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    connection.execute("DELETE FROM item WHERE id < 30")
    try:
        connection.execute("DELETE FROM item WHERE id >= 30")
    finally:
        connection.commit()
    yield connection.execute(COUNT).fetchall()


def a_crash(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    try:
        yield connection.execute(COUNT).fetchall()
    except MemoryError:
        os.abort()


MISTAKES = {
    chapter.name: (chapter, what)
    for chapter, what in [
        (Chapter(a_wrong_row, some_items), "instead of"),
        (Chapter(a_wrong_class, some_items), "raised SystemError"),
        (Chapter(something_kept, some_items), "leak: "),
        (Chapter(a_descriptor_kept, some_items), "leak: +1 descriptors"),
        (Chapter(half_a_transaction, some_items), "main.db is of no step"),
        (Chapter(a_crash, some_items), "the process ended with -6"),
    ]
}
