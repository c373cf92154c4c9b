"""The differences that are known: those that are meant, with the reason, and those still open.

A test plays the example of each on both drivers, so an entry whose difference is gone fails there
and is deleted here. Patterns are regular expressions, searched for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fuzz.observe import Observation


def _error_class(text: str) -> str:
    """The class of an observed error."""
    return text.removeprefix("! ").removeprefix("['").partition(" ")[0]


@dataclass(frozen=True)
class Known:
    """A known difference between the standard library and Oxlite."""

    name: str
    reason: str
    """Why it is meant; for an open one, what is wrong."""
    example: tuple[str, ...] = ()
    """Steps that show it."""
    step: str = ""
    what: str = "^value$"
    """Which observation differs."""
    expected: str = ""
    found: str = ""
    diverges: bool = False
    """Whether the two are in different states afterwards, so that nothing more can be compared."""
    is_open: bool = False
    """Whether it is a mistake of Oxlite's that waits to be mended."""
    after: str = ""
    """A pattern for the steps up to this one."""
    same_class: bool = False
    """Whether both must be errors of the same class."""
    feature: str = ""
    """What both drivers must be able to do for the example."""
    refused: bool = False
    """Whether both must have refused the step, in the same words."""
    not_iterable: bool = False
    """Whether either error, or the step, must be about something that cannot be iterated."""

    def covers(
        self, steps: Sequence[str], number: int, theirs: Observation, ours: Observation, what: str
    ) -> bool:
        """Whether this is that difference."""
        expected, found = theirs.get(what, "unchanged"), ours.get(what, "unchanged")
        step = steps[number] if number < len(steps) else "the end"
        if self.same_class and _error_class(expected) != _error_class(found):
            return False
        if self.refused and not (
            theirs.get("value") == ours.get("value", "") and ours["value"][0] == "!"
        ):
            return False
        if self.not_iterable and "not iterable" not in theirs["value"]:
            return False
        if self.after and not any(re.search(self.after, text) for text in steps[: number + 1]):
            return False
        return all(
            re.search(pattern, text, re.DOTALL)
            for pattern, text in (
                (self.step, step),
                (self.what, what),
                (self.expected, expected),
                (self.found, found),
            )
        )


MEMORY = "c0 = sqlite3.connect(':memory:')"

INTENDED: tuple[Known, ...] = (
    Known(
        "the text about a NUL in a name",
        "Oxlite says which name.",
        ("c0 = sqlite3.connect('a\\0b')",),
        expected="^! ValueError None embedded null",
        found="^! ValueError None (embedded null|isolation_level string must be)",
    ),
    Known(
        "the text of a TypeError, OverflowError or AttributeError",
        "Arguments are parsed and converted by PyO3, whose sentences are not Argument Clinic's. "
        "The class is the same.",
        (MEMORY, "c0.cursor(1, 2)"),
        what="^(value|log|unraisable)$",
        expected="(! |\\[')(TypeError|OverflowError|AttributeError) |'TypeError'",
        found="(! |\\[')(TypeError|OverflowError|AttributeError) |'TypeError'",
        same_class=True,
    ),
    Known(
        "which of several wrong arguments is named",
        "The standard library converts arguments in its order, PyO3 in its own. Only where one of "
        "them holds a NUL, a truth value that refuses to answer, or too many pages.",
        (MEMORY, "c0.create_function('x\\0', 'x', None)"),
        step="\\\\0|Truth\\(|'bad'|b[01]\\[.*\\] = |backup\\(.*pages=2\\*\\*40",
        expected="^! (TypeError|ValueError|OverflowError|KeyError|IndexError) None",
        found="^! (TypeError|ValueError|OverflowError|KeyError|IndexError) None",
    ),
    Known(
        "why a file cannot be opened",
        "SQLite says neither which file nor why; Oxlite adds both to SQLite's own words.",
        ("c0 = sqlite3.connect(path('gone/x.db'))",),
        what="^(value|log)$",
        expected="SQLITE_(CANTOPEN|NOTADB|READONLY)\\w* ",
        found="SQLITE_(CANTOPEN|NOTADB|READONLY)\\w* .*(: |\\()",
    ),
    Known(
        "None where the standard library wants an argument left out",
        "Our signatures have None as the default, so it may be given: factory.",
        ("c0 = sqlite3.connect(':memory:', factory=None)",),
        step="factory=None|cursor\\(None\\)",
        expected="^! TypeError None 'NoneType' object ",
        diverges=True,
    ),
    Known(
        "sizes that no C int can hold",
        "Oxlite's sizes are 64 bits wide.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a)')",
            "c0.execute('INSERT INTO t VALUES (zeroblob(3))')",
            "b0 = c0.blobopen('t', 'a', 1)",
            "b0.read(2**40)",
        ),
        step="2\\*\\*40",
        expected="^! OverflowError None Python int too large to convert to C int",
        diverges=True,
    ),
    Known(
        "deserialize of a name that cannot be replaced",
        "The standard library raises the connection's latest error, whatever that was about, or "
        "returns NULL without an exception (a SystemError).",
        (MEMORY, "c0.deserialize(c0.serialize(), name='temp')"),
        step="deserialize",
        expected="^! SystemError|^! \\w+Error SQLITE_",
        found="^! OperationalError SQLITE_ERROR SQL logic error",
    ),
    Known(
        "serialize of what must not be read",
        "The standard library says for every reason that it is unable to serialize; Oxlite has the"
        " reason.",
        (MEMORY, "c0.set_authorizer(lambda *a: 2**40)", "c0.serialize()"),
        step="serialize",
        expected="unable to serialize",
        found="SQLITE_",
    ),
    Known(
        "deserialize of nothing",
        "The standard library takes the NULL of an allocation of no bytes for a lack of memory.",
        (MEMORY, "c0.deserialize(b'')"),
        step="deserialize",
        expected="^! MemoryError",
        diverges=True,
    ),
    Known(
        "mappings that are no dict",
        "The standard library takes a mapping written in Python for a sequence, and asks it for 0; "
        "Oxlite asks it for the names.",
        (MEMORY, "c0.execute('SELECT :a', collections.ChainMap({'a': 1})).fetchall()"),
        step="Registered|Mapping|ChainMap|UserDict",
        what="",
        diverges=True,
    ),
    Known(
        "what iterdump asks",
        "The statements behind a dump are not part of what it promises; traces and authorizers see "
        "others. Row factories do not disturb ours.",
        (
            MEMORY,
            "c0.set_trace_callback(noting(None))",
            "next(c0.iterdump())",
        ),
        step="iterdump",
        after="set_trace|set_authorizer|row_factory|text_factory|set_progress|setlimit|"
        "NotingConnection|MyConnection|OddConnection",
        what="",
        diverges=True,
        feature="iterdump",
    ),
    Known(
        "a row's item by something with __index__",
        "Taken as by a tuple; the standard library wants an int.",
        ("r0 = sqlite3.Row(sqlite3.connect(':memory:').cursor(), (7,))", "r0[Index(0)]"),
        expected="^! IndexError None Index must be int or string",
    ),
    Known(
        "an exception of a collation",
        "In some statements the standard library lets it out as it is; in Oxlite it is always "
        "dropped (or shown).",
        (
            MEMORY,
            "c0.create_collation('mine', reverse)",
            "c0.execute(\"SELECT CAST(x'ff' AS TEXT) < 'b' COLLATE mine\").fetchall()",
        ),
        after="create_collation",
        expected="^! (?!OperationalError|IntegrityError|DatabaseError)",
        diverges=True,
    ),
    Known(
        "executemany of RETURNING counts its changes",
        "The standard library abandons each set at its first row, and SQLite counts changes at the "
        "end of a statement: total_changes and rowcount miss them.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a)')",
            "k0 = c0.cursor()",
            "k0.executemany('INSERT INTO t VALUES (?) RETURNING a', [(1,)])",
        ),
        step="executemany.*RETURNING",
        what="total_changes|rowcount",
        diverges=True,
    ),
    Known(
        "when a progress handler is called",
        "SQLite counts instructions for each prepared statement, and which executions share one "
        "depends on the statement cache.",
        (),
        after="set_progress_handler",
        what="",
        diverges=True,
    ),
    Known(
        "an error of the statement before",
        "After a parameter that cannot be bound, the standard library's cached statement may raise "
        "the connection's latest error at its next use, whatever that was.",
        (),
        expected="^! (OperationalError|IntegrityError|DatabaseError) SQLITE_",
        found="^! ProgrammingError None (Error binding|Incorrect number)|^! OperationalError",
        after="Point\\(|executemany",
        diverges=True,
    ),
    Known(
        "functions may be defined while parameters are collected",
        "The statement does not run yet then; in the standard library it may.",
        (),
        expected="Error creating function|unable to delete/modify",
        what="^(value|log)$",
        diverges=True,
    ),
    Known(
        "BEGIN and COMMIT stay prepared",
        "An authorizer is asked about them when they are prepared, which is seldom; setting it "
        "makes SQLite prepare everything anew.",
        (),
        after="set_authorizer",
        what="^log$",
        diverges=True,
    ),
    Known(
        "a connection changed by its own parameters",
        "The standard library has prepared and bound half of the statement when a parameter's code "
        "closes the connection or uses the cursor, and then fails with MemoryError or SQLITE_ROW.",
        (),
        expected="^! MemoryError|SQLITE_ROW|SQLITE_DONE|SQLITE_MISUSE",
        diverges=True,
    ),
    Known(
        "SystemErrors",
        "Mistakes of the standard library: a NULL without an exception, a negative size.",
        (),
        expected="SystemError",
        diverges=True,
    ),
    Known(
        "attributes of a connection that was never made",
        "text_factory has its default from the beginning.",
        ("c0 = LazyConnection(5)", "c0.text_factory"),
        step="text_factory",
        after="LazyConnection",
    ),
    Known(
        "None for no aggregate",
        "It removes the aggregate, as for functions; the standard library calls None.",
        (MEMORY, "c0.create_aggregate('agg', 1, None)", "c0.execute('SELECT agg(1)')"),
        after="create_(aggregate|function)\\(.*None\\)",
        expected="user-defined aggregate's|wrong number of arguments|may not be used as a window|"
        "user-defined function raised|Recursive use of cursors|list of|Cursor|datatype mismatch|"
        "Error binding parameter",
        found="no such function",
        diverges=True,
    ),
    Known(
        "a dump of virtual tables",
        "The standard library writes the rows of an FTS5 table into its own dump a second time, "
        "which cannot be read back.",
        (),
        step="iterdump",
        after="fts5",
        what="",
        diverges=True,
    ),
    Known(
        "a connection closed by its own backup's progress",
        "Refused until the backup is over; the standard library closes it under the backup.",
        (
            MEMORY,
            "c1 = sqlite3.connect(':memory:')",
            "c0.execute('CREATE TABLE t(a)')",
            "c0.backup(c1, pages=1, progress=acting(lambda: c0.close(), 0))",
        ),
        step="backup.*(close|__init__)\\(",
        what="",
        diverges=True,
    ),
    Known(
        "the target of a backup used by its progress",
        "Refused until the backup is over: SQLite forbids it, does not look, and crashes.",
        (
            MEMORY,
            "c1 = sqlite3.connect(':memory:')",
            "c0.execute('CREATE TABLE t(a)')",
            "c0.backup(c1, pages=1, progress=acting(lambda: c1.commit(), 0))",
        ),
        step="backup\\(",
        what="",
        found="is the target of a backup",
        diverges=True,
    ),
    Known(
        "what its progress does to the target of a backup",
        "Nothing, since it is refused; in the standard library it writes there.",
        (
            "c0 = sqlite3.connect(':memory:')",
            "c1 = sqlite3.connect(path('b.db'))",
            "c1.execute('CREATE TABLE t(a)')",
            "c0.execute('CREATE TABLE t(a)')",
            "c1.backup(c0, pages=1, progress=acting(lambda: c0.execute('DELETE FROM t'), 0))",
        ),
        step="backup\\((c\\d)\\b.*lambda: \\1\\.",
        what="^c\\d\\.(in_transaction|total_changes)$",
        diverges=True,
    ),
    Known(
        "which column of a row fails first",
        "A row is read before code of the user's runs, with the connection unlocked then.",
        (),
        expected="^! ",
        found="^! OperationalError None Could not decode to UTF-8",
        diverges=True,
    ),
    Known(
        "which parameter fails first",
        "All parameters are made ready before the first is bound: their code runs with the "
        "connection unlocked.",
        (MEMORY, "c0.execute('SELECT ?, ?', (object(), memoryview(b'abcd')[::2]))"),
        what="^(value|log)$",
        expected="Error binding parameter|^! (UnicodeEncodeError|OverflowError|KeyError|TypeError)",
        found="^! (BufferError|KeyError|TypeError|AttributeError|ProgrammingError None)",
        step="memoryview|Conforming|Point|array|Str|Bytes",
        diverges=True,
    ),
    Known(
        "what the code of parameters has done before one is refused",
        "All their code has run before the first is bound; in the standard library only that of "
        "the first ones has.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a)')",
            "c0.executemany('INSERT INTO t VALUES (:a || :b)', [collections.defaultdict("
            "lambda: c0.execute('INSERT INTO t VALUES (1)'))])",
        ),
        step="defaultdict\\(lambda: [ck]\\d\\.execute",
        what="^[ck]\\d\\.(total_changes|in_transaction|rowcount|lastrowid)$",
        diverges=True,
        refused=True,
    ),
    Known(
        "whose error is raised where a parameter is refused",
        "That of the code of a later parameter, which runs before the first is bound.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a)')",
            "c0.executemany('INSERT INTO t VALUES (:a || :b)', [collections.defaultdict("
            "lambda: c0.execute('ROLLBACK'))])",
        ),
        step="defaultdict\\(lambda: [ck]\\d\\.execute",
        expected="^! ProgrammingError None Error binding parameter",
        found="^! (OperationalError|IntegrityError) SQLITE_",
        diverges=True,
    ),
    Known(
        "rowids drawn at random",
        "SQLite draws them once the largest is in use, in each process others.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a INTEGER PRIMARY KEY)')",
            "c0.execute('INSERT INTO t VALUES (?)', (2**63-1,))",
            "k0 = c0.execute('INSERT INTO t VALUES (NULL)')",
        ),
        after="2\\*\\*63 ?- ?1|9223372036854775807",
        what="^[ck]\\d\\.lastrowid$",
        expected="^int \\d{14,19}$",
        found="^int \\d{14,19}$",
        diverges=True,
    ),
    Known(
        "attributes after a refusal",
        "A refused execution (closed database, other thread) changes nothing.",
        (
            MEMORY,
            "k0 = c0.execute('CREATE TABLE t(a)')",
            "k0.execute('INSERT INTO t VALUES (1)')",
            "c0.close()",
            "k0.execute('SELECT 1')",
        ),
        what="\\.(rowcount|lastrowid|description|arraysize)$",
        refused=True,
        diverges=True,
    ),
    Known(
        "interrupt between statements",
        "An interrupt is for what runs; preparing nothing is not noticed by it.",
        (),
        after="interrupt",
        expected="SQLITE_INTERRUPT",
        diverges=True,
    ),
    Known(
        "a connection made anew by its own parameters",
        "Their statement is of the database before, which is closed then; the standard library "
        "keeps that database as long as the statement.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a)')",
            "c0.executemany('INSERT INTO t VALUES (?)', "
            "doing(lambda: c0.__init__(':memory:'), (7,)))",
        ),
        step="execute.*(__init__|close)",
        what="",
        diverges=True,
    ),
    Known(
        "which of two misuses is named",
        "A wrong argument for a closed connection, a closed blob in another thread: checked in "
        "another order.",
        ("c0 = LazyConnection(5)", "c0.executescript(None)"),
        what="^(value|log)$",
        expected="ProgrammingError.*(thread|closed|__init__ not called)",
        found="(Programming|Value)Error.*(thread|closed|same|not called|null char)|! TypeError|"
        "! UnicodeEncodeError",
    ),
    Known(
        "a dump of broken foreign keys",
        "Written as by the newest CPython, which switches foreign keys off first.",
        (
            MEMORY,
            "c0.executescript('CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(x REFERENCES p); "
            "INSERT INTO c VALUES (7)')",
            "list(c0.iterdump())",
        ),
        step="iterdump",
        found="PRAGMA foreign_keys=OFF",
        diverges=True,
        feature="iterdump",
    ),
    Known(
        "what a failing create_window_function says",
        "SQLite's latest message, which in the standard library may be about something else.",
        (),
        step="create_window_function",
        expected="^! ProgrammingError None",
        found="^! ProgrammingError None",
    ),
    Known(
        "the length of a blob whose row has changed",
        "Once SQLite has given the blob up, it is 0 in the standard library; Oxlite keeps it and "
        "goes on to say why nothing can be read.",
        (
            MEMORY,
            "c0.executescript('CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(3))')",
            "b0 = c0.blobopen('t', 'a', 1)",
            "c0.execute('DELETE FROM t')",
            "b0.read(1)",
            "b0.read(1)",
        ),
        step="b[01]",
        expected="^(bytes b''|int 0|! (IndexError|ValueError))",
        diverges=True,
    ),
    Known(
        "an authorizer that counts",
        "It is asked once about BEGIN and COMMIT, which stay prepared, so what it denies at its "
        "n-th call is another statement.",
        (),
        after="set_authorizer\\(at_call",
        what="",
        diverges=True,
    ),
    Known(
        "KeyboardInterrupt in a callback",
        "It, SystemExit and their like end the statement and are raised by whoever runs it; the "
        "standard library drops them.",
        (
            MEMORY,
            "c0.create_function('f', 0, raising(KeyboardInterrupt()))",
            "c0.execute('SELECT f()').fetchall()",
        ),
        what="^(value|log|unraisable)$",
        found="KeyboardInterrupt|SystemExit|unchanged",
        after="KeyboardInterrupt|SystemExit",
        diverges=True,
    ),
    Known(
        "deserialized nonsense",
        "Which statement finds it first depends on what is kept prepared.",
        (),
        after="deserialize\\('x'\\)|deserialize\\(b'",
        what="",
        diverges=True,
    ),
    Known(
        "a cursor that is made anew in the middle of a modification",
        "The statement is stopped and counted then; the standard library never counts it.",
        (
            MEMORY,
            "c0.executescript('CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)')",
            "k1 = c0.cursor()",
            "k1.execute('DELETE FROM t RETURNING a')",
            "k1.__init__(c0)",
        ),
        step="__init__",
        what="total_changes|rowcount",
        diverges=True,
    ),
    Known(
        "a connection made anew in the middle of rows",
        "What is left of them, and its count, are of the database before.",
        (),
        after="c\\d\\.__init__",
        what="",
        diverges=True,
    ),
    Known(
        "a dump beside temporary tables, or of text that is none",
        "A table of the main database is read even if a temporary one hides its name, and text "
        "that is not UTF-8 is dumped too.",
        (),
        step="iterdump",
        what="",
        after="TEMP TABLE|CAST\\(x'ff'|x'00ff'",
        diverges=True,
    ),
    Known(
        "a dump of text with a NUL",
        "Written as a concatenation with char(0); in the standard library's dump the text ends at "
        "the NUL.",
        (
            MEMORY,
            "c0.execute('CREATE TABLE t(a)')",
            "c0.execute('INSERT INTO t VALUES (char(0))')",
            "list(c0.iterdump())",
        ),
        step="iterdump",
        found="\\|\\|char\\(0\\)\\|\\|",
        diverges=True,
        feature="iterdump",
    ),
    Known(
        "files kept open by a function that holds a cursor of its connection",
        "Closing ends the statements of a connection's cursors. In the standard library they are "
        "left to the cursors, and one that a function of the connection holds never goes.",
        (),
        after="create_\\w+\\(.*\\b[ck]\\d\\b.*\\)",
        what="^descriptors left open$",
        expected="^[1-9]",
        found="^0$",
    ),
    Known(
        "deserialize in the middle of rows",
        "Refused for every statement of the connection, since SQLite does not see an EXPLAIN.",
        (),
        step="deserialize",
        found="cannot be replaced",
        diverges=True,
    ),
)

OPEN: tuple[Known, ...] = ()

KNOWN = INTENDED + OPEN
