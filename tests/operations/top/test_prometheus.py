"""A sample in the form that Prometheus reads: its rules, and what is in it."""

import re

from tests.operations.top.conftest import Stage

from oxlite.operations.top import Watch, as_prometheus

LINE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+=\"(?:[^\"\\\n]|\\[\\\"n])*\",?)*)\} (-?[0-9.e+-]+)"
)


def parsed(text: str) -> dict[str, list[tuple[str, float]]]:
    """The series by their names; each name has its help and its type once, before it."""
    assert text.endswith("\n")
    found: dict[str, list[tuple[str, float]]] = {}
    told: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in told
            assert line.endswith(".")
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            assert typed == name
            assert (kind == "counter") is name.endswith("_total")
            assert kind in {"counter", "gauge"}
            told[name] = kind
        else:
            match = LINE.fullmatch(line)
            assert match, line
            assert match[1] == name
            found.setdefault(name, []).append((match[2], float(match[3])))
    assert found.keys() == told.keys()
    assert all(len({labels for labels, _ in one}) == len(one) for one in found.values())
    return found


def test_it_keeps_the_rules_of_the_format(stage: Stage) -> None:
    reader, writer = stage.stranger(), stage.own()
    reader.do("c.execute('BEGIN'); c.execute('SELECT count(*) FROM t').fetchall()")
    writer.do("c.execute('BEGIN IMMEDIATE')")
    writer.do("c.execute('INSERT INTO t(filling) VALUES (1)')")
    with Watch(stage.path) as watch:
        sample = watch.look()
    found = parsed(as_prometheus(sample))
    assert sample.wal is not None
    label = f'database="{sample.path}"'
    assert found["oxlite_database_size_bytes"] == [(label, stage.path.stat().st_size)]
    assert found["oxlite_database_commits_total"] == [(label, sample.commits)]
    assert found["oxlite_wal_frames"] == [(label, sample.wal.frames)]
    assert found["oxlite_write_lock_held"] == [(label, 1)]
    assert found["oxlite_readers"] == [(label, 1)]
    assert found["oxlite_processes"] == [(label, 2)]


def test_a_label_is_escaped(stage: Stage) -> None:
    path = stage.path.with_name('a "b" \\ c\n.db')
    stage.path.rename(path)
    with Watch(path) as watch:
        text = as_prometheus(watch.look())
    (label, _), *_ = parsed(text)["oxlite_database_size_bytes"]
    # What a terminal would obey is written out first, and its backslash escaped then.
    assert label.endswith(r'a \"b\" \\ c\\n.db"')


def test_what_is_not_known_is_left_out(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        found = parsed(as_prometheus(watch.look()))
    assert "oxlite_wal_frames" not in found
    assert "oxlite_database_commits_total" not in found
    assert "oxlite_waiting_threads" not in found
