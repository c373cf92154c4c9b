"""Random SQL: mostly valid statements on a small schema, with their parameters' places.

Only what every SQLite since 3.40 understands is written. Nothing depends on time or chance.
"""

import random
from dataclasses import dataclass, field

SCHEMAS = (
    """CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL DEFAULT 0);
INSERT INTO t VALUES (1, 'one', 1.5), (2, x'00ff', 'zwei'), (3, NULL, -7), (5, 2.5, 'é');""",
    """CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT COLLATE NOCASE, c BLOB);
CREATE TABLE u(x REFERENCES t(a) DEFERRABLE INITIALLY DEFERRED, y CHECK (y <> 13), z);
CREATE INDEX i ON u(y, z);
CREATE TRIGGER r AFTER INSERT ON u BEGIN INSERT INTO t(b) VALUES (new.y); END;
INSERT INTO u VALUES (1, 2, 3), (1, 4, 'x');""",
    """CREATE TABLE t(a TEXT PRIMARY KEY, b INT, c REAL) WITHOUT ROWID;
INSERT INTO t VALUES ('x', 1, 1), ('y', 2, 2), ('z', 3, 1e300);
CREATE VIEW v AS SELECT a, b + 1 AS "b [int]" FROM t;
CREATE TRIGGER r INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (new.a, 0, 0); END;""",
    """CREATE TABLE t(a, b, c); CREATE TABLE u(x, y, z);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
INSERT INTO t SELECT i, 'text ' || i, zeroblob(i % 50) FROM n;""",
    """CREATE TABLE t(a INTEGER PRIMARY KEY, b NOT NULL ON CONFLICT IGNORE,
c UNIQUE ON CONFLICT REPLACE);
CREATE TABLE u(x, y, z);
CREATE TRIGGER r BEFORE DELETE ON t BEGIN
SELECT CASE WHEN old.a = 3 THEN RAISE(ABORT, 'three') WHEN old.a = 4 THEN RAISE(ROLLBACK, 'four')
WHEN old.a = 5 THEN RAISE(FAIL, 'five') WHEN old.a = 6 THEN RAISE(IGNORE) END; END;
INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5), (6, 6, 6);""",
    "CREATE TABLE t(a point, b mine, c \"conv [x]\"); INSERT INTO t VALUES ('1;2', 'm', 3);",
    "CREATE VIRTUAL TABLE t USING fts5(a, b, c); INSERT INTO t VALUES ('x y', 'z', 'x'), (1, 2, 3);"
    "CREATE TABLE u(x, y, z);",
    "CREATE TABLE t(a, b AS (a || '!') STORED, c AS (a + 1)); INSERT INTO t(a) VALUES (1), ('x');",
    "",
)

LITERALS = [
    *[
        "NULL",
        "0",
        "1",
        "-1",
        "2",
        "3",
        "5",
        "7",
        "13",
        "42",
        "1.5",
        "-0.0",
        "9e999",
        "-9e999",
        "4611686018427387904",
        "-9223372036854775808",
        "9223372036854775808",
        "0x10",
        "'x'",
        "''",
        "'X'",
        "'text'",
        "x''",
        "x'00'",
        "x'c328'",
        "'é'",
        "'1e2'",
        "TRUE",
        "zeroblob(3)",
        "'a''b'",
        "1e-320",
        "char(0)",
    ],
    "CAST(x'ff' AS TEXT)",
    "'two words'",
]

UNARY = [
    "abs",
    "typeof",
    "length",
    "quote",
    "hex",
    "upper",
    "lower",
    "unicode",
    "zeroblob",
    "char",
    "trim",
    "soundex",
    "json",
    "json_valid",
    "likelihood",
    "total",
    "sum",
    "count",
    "max",
    "min",
    "group_concat",
    "avg",
    "f",
    "g",
    "h",
    "bad",
    "agg",
]

COLUMNS = ("a", "b", "c", "x", "y", "z", "rowid")

PRAGMAS = (
    "user_version", "user_version = 7", "table_info(t)", "table_xinfo(t)", "foreign_keys = ON",
    "foreign_keys", "foreign_key_check", "journal_mode", "journal_mode = WAL",
    "journal_mode = DELETE", "journal_mode = MEMORY", "journal_mode = OFF", "synchronous = OFF",
    "cache_size = 1", "cache_spill = 1", "integrity_check", "quick_check", "index_list(t)",
    "wal_checkpoint(TRUNCATE)", "recursive_triggers = ON", "page_count", "application_id = 5",
    "read_uncommitted = 1", "query_only = ON", "query_only = OFF", "locking_mode = EXCLUSIVE",
    "locking_mode = NORMAL", "temp_store = 2", "auto_vacuum = 1", "encoding = 'UTF-16'", "encoding",
    "page_size = 512", "max_page_count = 3", "max_page_count = 5000", "writable_schema = ON",
    "count_changes = ON", "count_changes = OFF", "full_column_names = ON",
    "short_column_names = OFF", "empty_result_callbacks = 1", "case_sensitive_like = 1",
    "reverse_unordered_selects = 1", "defer_foreign_keys = 1", "ignore_check_constraints = 1",
    "no_such_pragma", "data_version", "optimize", "incremental_vacuum", "freelist_count",
    "cell_size_check = 1", "automatic_index = 0", "trusted_schema = 0", "secure_delete = 1",
    "function_list(f)", "collation_list", "database_list(1)", "schema_version", "busy_timeout",
    "shrink_memory", "hard_heap_limit", "soft_heap_limit", "analysis_limit = 1", "threads = 2",
)  # fmt: skip

TRANSACTION = (
    "BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT", "END", "ROLLBACK", "SAVEPOINT s",
    "SAVEPOINT 'T'", "ROLLBACK TO s", "RELEASE s", "ROLLBACK TRANSACTION TO t", "RELEASE t",
    " begin", "/* c */ COMMIT", "COMMIT;", "BEGIN; -- x",
)  # fmt: skip

DDL = (
    "CREATE TABLE new{n}(a, b)", "CREATE TABLE IF NOT EXISTS u(x, y, z)", "DROP TABLE new{n}",
    "DROP TABLE t", "DROP TABLE IF EXISTS u", "ALTER TABLE t ADD COLUMN d{n} DEFAULT {n}",
    "ALTER TABLE t RENAME COLUMN b TO bb", "ALTER TABLE t RENAME COLUMN bb TO b",
    "ALTER TABLE t DROP COLUMN c", "ALTER TABLE u RENAME TO uu", "ALTER TABLE uu RENAME TO u",
    "CREATE INDEX j{n} ON t(b)", "CREATE UNIQUE INDEX j{n} ON t(c)", "DROP INDEX j{n}",
    "CREATE INDEX e{n} ON t(f(a))", "CREATE VIEW v{n} AS SELECT * FROM t", "DROP VIEW v{n}",
    "CREATE TEMP TABLE t(a, b, c)", "CREATE TEMP TABLE tt AS SELECT * FROM t", "DROP TABLE temp.t",
    "CREATE TRIGGER g{n} AFTER UPDATE ON t BEGIN UPDATE u SET x = x + 1; END",
    "CREATE TRIGGER g{n} AFTER INSERT ON t BEGIN SELECT f(new.a); END",
    "CREATE TRIGGER g{n} AFTER DELETE ON t BEGIN INSERT INTO t VALUES (9, 9, 9); END",
    "DROP TRIGGER g{n}", "DROP TRIGGER r", "ANALYZE", "VACUUM", "REINDEX", "REINDEX mine",
    "VACUUM INTO 'x'", "CREATE TABLE strict{n}(a INT, b ANY) STRICT",
    "CREATE TABLE c{n}(a TEXT COLLATE mine, b COLLATE nocase)",
    "CREATE VIRTUAL TABLE f{n} USING fts5(x)", "CREATE TABLE gen{n}(a, b AS (a + 1))",
    "CREATE TABLE new{n} AS SELECT ? AS p", "EXPLAIN SELECT 1", "EXPLAIN QUERY PLAN DELETE FROM t",
    "EXPLAIN INSERT INTO t(a) VALUES (1)",
)  # fmt: skip

ODD = (
    "", " ", ";", ";;", "-- c", "/* c */", "/*", "SELECT 1; SELECT 2", "SELECT 1;", "SELECT 1; --x",
    "nonsense", "SELECT", "SELECT 'open", "SELECT 1\0", "\0", "SELECT '\ud800'", "SELECT 'é' AS é",
    "; SELECT 1", "-- c\nINSERT INTO t(b) VALUES (1)", "/* c */ UPDATE t SET b = b",
    "\ufeffSELECT 1", "SELECT 1 -- c", "SELECT 1; nonsense", "INSERT INTO t(b) VALUES (1); --",
    "\x0bSELECT 1", "insert or ignore into t values (1, 2, 3)", "replace into t(a) values (3)",
    "rePLACE INTO t(a, b) SELECT b, a FROM t", "VALUES (1), (2)",
    "WITH w AS (SELECT 1) DELETE FROM t", "EXPLAIN", "PRAGMA", "SELECT * FROM t, t AS s LIMIT 5",
    "SELECT ?32766", "SELECT ?0", "SELECT ?3", "SELECT :a, :a, @a, $a, ?", "SELECT ?2, ?, ?1",
    "SELECT 1 AS 'a [b]', 2 AS \"c [d] e\", 3 AS [f]", "SELECT CAST(x'80' AS TEXT)",
    "SELECT 1 AS \"\"", "SELECT 'x' AS \"a\0b\"", "SELECT $a::b(c)", "SELECT :é", "INSERT",
    "DELETE FROM", "UPDATE", "insertion", "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t DEFAULT VALUES RETURNING *", "DELETE FROM t RETURNING f(a)",
    "SELECT raise(abort, 'x')", "SELECT 1/0", "SELECT abs(-9223372036854775808)",
    "SELECT zeroblob(2000000000)", "SELECT sum(4611686018427387904) FROM t, t",
    "SELECT json_extract('{', '$')", "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_table_info('t')", "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
    "SELECT load_extension('x')", "SELECT last_insert_rowid(), changes(), total_changes()",
    "SELECT sqlite_version() > '3'",
)  # fmt: skip


@dataclass
class Statement:
    """SQL, and which parameters it takes."""

    sql: str
    style: str = "?"
    """How parameters are written: ``?``, ``?1`` or the prefixes of named ones."""
    names: list[str] = field(default_factory=list)
    """One for each parameter, in order; for ``?`` they are numbers."""


class Writer:
    """Writes statements."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.statement = Statement("")

    def one_of(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def parameter(self) -> str:
        """A parameter's place."""
        statement = self.statement
        number = len(statement.names) + 1
        match statement.style:
            case "?":
                statement.names.append(str(number))
                return "?"
            case "?1":
                if statement.names and self.chance.random() < 0.2:
                    return f"?{self.chance.randrange(len(statement.names)) + 1}"
                statement.names.append(str(number))
                return f"?{number}"
        name = self.one_of("a", "b", "c", "long_name", "e1")
        if name not in statement.names:
            statement.names.append(name)
        return statement.style + name

    def expression(self, depth: int = 0) -> str:
        roll = self.chance.random()
        if depth > 2 or roll < 0.25:
            return self.chance.choice(LITERALS)
        if roll < 0.45:
            return self.chance.choice(COLUMNS[:3] if self.chance.random() < 0.8 else COLUMNS)
        if roll < 0.6:
            return self.parameter()
        inner = self.expression
        if roll < 0.72:
            return f"{self.chance.choice(UNARY)}({inner(depth + 1)})"
        if roll < 0.84:
            operator = self.one_of(
                "+", "-", "*", "/", "%", "||", "=", "<>", "<", ">=", "AND", "OR", "IS", "IS NOT",
                "LIKE", "GLOB", "&", "<<", "->>", "COLLATE mine =", "COLLATE nocase <",
            )  # fmt: skip
            return f"({inner(depth + 1)} {operator} {inner(depth + 1)})"
        first = inner(depth + 1)
        match self.chance.randrange(8):
            case 0:
                last = self.chance.choice(LITERALS)
                return f"CASE WHEN {first} THEN {inner(depth + 1)} ELSE {last} END"
            case 1:
                return f"CAST({first} AS {self.one_of('INT', 'TEXT', 'REAL', 'BLOB', 'NUMERIC')})"
            case 2:
                return f"({first} IN ({inner(depth + 1)}, 1, 'x'))"
            case 3:
                return f"(SELECT {first} FROM {self.table()} LIMIT 1)"
            case 4:
                return f"EXISTS (SELECT {first})"
            case 5:
                function = self.one_of("coalesce", "nullif", "instr", "f", "g", "replace", "iif")
                return f"{function}({first}, {inner(depth + 1)})"
            case 6:
                return f"substr({first}, 1, {inner(depth + 1)})"
        return f"({first} BETWEEN {inner(depth + 1)} AND 5)"

    def table(self) -> str:
        return self.one_of("t", "t", "t", "t", "u", "v", "main.t", "temp.tt", "other.t", "gone")

    def where(self) -> str:
        if self.chance.random() < 0.4:
            return ""
        condition = self.one_of("a > 1", "rowid < 4", "b IS NULL", "a = {}", "")
        # Written only if chosen: each call of `parameter` is one more parameter.
        if condition == "a = {}":
            condition = condition.format(self.parameter())
        return f" WHERE {condition or self.expression(1)}"

    def select(self) -> str:
        columns = ", ".join(
            self.expression() + (self.one_of("", "", " AS n", ' AS "x [y]"', ' AS "N"'))
            for _ in range(self.chance.choice([1, 1, 2, 3]))
        )
        if self.chance.random() < 0.3:
            columns = "*"
        elif self.chance.random() < 0.1:
            over = self.one_of(
                "ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ORDER BY rowid", "",
                "PARTITION BY typeof(b) ORDER BY a", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            )  # fmt: skip
            columns += f", {self.one_of('agg', 'sum', 'count', 'row_number', 'w')}(a) OVER ({over})"
        text = f"SELECT {self.one_of('', '', '', 'DISTINCT ')}{columns}"
        if self.chance.random() < 0.8:
            text += f" FROM {self.table()}"
            if self.chance.random() < 0.1:
                text += self.one_of(" JOIN u ON a = x", ", t AS s", " NATURAL LEFT JOIN u")
            text += self.where()
        if self.chance.random() < 0.1:
            text += f" GROUP BY {self.one_of('a', 'typeof(b)', '1')}"
        if self.chance.random() < 0.1:
            text += f" {self.one_of('UNION', 'UNION ALL', 'EXCEPT')} SELECT {self.expression(2)}"
        if self.chance.random() < 0.3:
            text += " ORDER BY " + self.one_of("1", "a DESC", "b COLLATE mine", "+b", "f(a)", "2")
        if self.chance.random() < 0.2:
            text += f" LIMIT {self.one_of('2', '5', '') or self.parameter()}"
        if self.chance.random() < 0.08:
            text = f"WITH cte AS ({text}) SELECT * FROM cte"
        return text

    def returning(self) -> str:
        if self.chance.random() < 0.25:
            what = self.one_of("*", "a", "a, b AS bee", "rowid", "")
            return f" RETURNING {what or self.expression(2)}"
        return ""

    def insert(self) -> str:
        verb = self.one_of(
            "INSERT", "INSERT", "INSERT", "REPLACE", "INSERT OR IGNORE", "INSERT OR REPLACE",
            "INSERT OR ROLLBACK", "INSERT OR FAIL", "INSERT OR ABORT",
        )  # fmt: skip
        table = self.table()
        columns = self.one_of("(a, b)", "(b)", "", "(a, b, c)", "(c)")
        width = columns.count(",") + 1 if columns else 3
        if self.chance.random() < 0.12:
            text = f"{verb} INTO {table}{columns} {self.select()}"
        else:
            rows = ", ".join(
                f"({', '.join(self.value() for _ in range(width))})"
                for _ in range(self.chance.choice([1, 1, 1, 2, 3]))
            )
            text = f"{verb} INTO {table}{columns} VALUES {rows}"
            if self.chance.random() < 0.12:
                text += " ON CONFLICT " + self.one_of(
                    "DO NOTHING", "(a) DO UPDATE SET b = excluded.b", "DO UPDATE SET c = c + 1"
                )
        return text + self.returning()

    def value(self) -> str:
        roll = self.chance.random()
        if roll < 0.6:
            return self.parameter()
        return self.chance.choice(LITERALS) if roll < 0.9 else self.expression(2)

    def update(self) -> str:
        verb = self.one_of("UPDATE", "UPDATE", "UPDATE OR IGNORE", "UPDATE OR ROLLBACK")
        column = self.one_of("b", "c", "a", "b")
        text = f"{verb} {self.table()} SET {column} = {self.value()}"
        if self.chance.random() < 0.1:
            text += " FROM u"
        return text + self.where() + self.returning()

    def delete(self) -> str:
        return f"DELETE FROM {self.table()}{self.where()}{self.returning()}"

    def begin(self) -> None:
        """Begins a statement with a style of parameters."""
        style = self.one_of("?", "?", "?", "?1", ":", ":", "@", "$")
        self.statement = Statement("", style)

    def data_modification(self) -> Statement:
        """INSERT, UPDATE, DELETE, REPLACE."""
        self.begin()
        write = self.chance.choice(
            [self.insert, self.insert, self.insert, self.update, self.delete]
        )
        text = write()
        if self.chance.random() < 0.05:
            text = self.one_of("WITH w AS (SELECT 1) ", "/* c */ ", "-- c\n", "EXPLAIN ") + text
        return self.finished(text)

    def any(self) -> Statement:
        """Any statement."""
        self.begin()
        roll = self.chance.random()
        if roll < 0.42:
            return self.finished(self.select())
        if roll < 0.72:
            return self.data_modification()
        if roll < 0.8:
            return self.finished(self.chance.choice(TRANSACTION))
        if roll < 0.87:
            text = self.chance.choice(DDL).format(n=self.chance.randrange(3))
            return self.finished(text, count=text.count("?"))
        if roll < 0.91:
            return self.finished("PRAGMA " + self.chance.choice(PRAGMAS))
        if roll < 0.94:
            return self.finished(
                self.one_of(
                    "ATTACH ':memory:' AS other",
                    "ATTACH '' AS other",
                    "DETACH other",
                    "CREATE TABLE other.t(a, b, c)",
                    "INSERT INTO other.t SELECT * FROM main.t",
                )
            )
        text = self.chance.choice(ODD)
        return self.finished(text, count=text.count("?"))

    def finished(self, text: str, count: int | None = None) -> Statement:
        statement = self.statement
        statement.sql = text
        if count is not None:
            statement.style, statement.names = "?", [str(n + 1) for n in range(count)]
        return statement

    def script(self) -> str:
        """Several statements without parameters."""
        parts = []
        for _ in range(self.chance.choice([0, 1, 2, 2, 3])):
            statement = self.any()
            if not statement.names or self.chance.random() < 0.2:
                parts.append(statement.sql)
        return self.one_of(";", "; ", ";\n-- c\n", ";;").join(parts)
