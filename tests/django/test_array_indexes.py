"""``ArrayIndex``: what is in one, whoever writes; that it changes no answer, and what keeps it."""

from pathlib import Path

import pytest
from tests.django import conftest
from tests.django.array_site import FUNCTION, MODELS, ArraySite, copied

INDEXED = """
class Indexed(models.Model):
    code = models.CharField(max_length=20, unique=True)
    tags = ArrayField(models.CharField(max_length=20), null=True)
    pairs = ArrayField(ArrayField(models.IntegerField()), default=list)

    class Meta:
        indexes = [
            ArrayIndex(fields=["tags"], name="indexed_tags"),
            ArrayIndex(fields=["pairs"], name="indexed_pairs"),
        ]

class Keyed(models.Model):
    key = models.CharField(max_length=20, primary_key=True)
    numbers = ArrayField(models.IntegerField())

    class Meta:
        indexes = [ArrayIndex(fields=["numbers"])]
"""

START_INDEXED = """
from notes.models import Indexed, Keyed

def entries(name="indexed_tags"):
    return sorted(sql(f'SELECT value, "row" FROM {name}'))

def wanted(name, **fields):
    rows = Indexed.objects.values_list("pk", name)
    flat = lambda value: sum(map(flat, value), []) if isinstance(value, list) else [value]
    return sorted({(each, pk) for pk, of_row in rows for each in flat(of_row) if each is not None})

"""


@pytest.fixture(scope="module")
def with_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with indexes of arrays."""
    site = ArraySite(tmp_path_factory.mktemp("indexes") / "site")
    models = conftest.MODELS + FUNCTION + MODELS + INDEXED
    site.write(
        "notes/models.py",
        models.replace("\n\n", "\nfrom oxlite.django.indexes import ArrayIndex\n", 1),
    )
    site.migrate()
    return site.folder


@pytest.fixture
def indexed(tmp_path: Path, with_index: Path) -> ArraySite:
    """A site with indexes of arrays, and empty tables."""
    return copied(with_index, tmp_path)


def test_an_index_has_the_elements_of_each_row_whoever_writes(indexed: ArraySite) -> None:
    indexed.run(
        START_INDEXED
        + """
a = Indexed.objects.create(code="a", tags=["x", "y", "x", "y"], pairs=[[1, 2], [2, 3]])
b = Indexed.objects.create(code="b", tags=["y"])
Indexed.objects.create(code="c"), Indexed.objects.create(code="d", tags=[])
def right():
    found = entries(), entries("indexed_pairs")
    assert found == (wanted("tags"), wanted("pairs")), found
right()
assert entries("indexed_pairs") == [(1, a.pk), (2, a.pk), (3, a.pk)]
Indexed.objects.filter(code="b").update(tags=["y", "z"]), right()
Indexed.objects.update(code=F("code")), right()
Indexed.objects.filter(code="c").update(tags=["z"]), right()
Indexed.objects.filter(code="a").update(tags=None), right()
Indexed.objects.filter(pk=b.pk).update(id=b.pk + 100), right()
sql("UPDATE notes_indexed SET _rowid_ = _rowid_ + 1000 WHERE code = 'a'"), right()
sql("UPDATE notes_indexed SET tags = '[\\"v\\"]', _rowid_ = _rowid_ + 1 WHERE code = 'a'"), right()
Indexed.objects.filter(code="a").update(tags=None), right()
Indexed.objects.bulk_create(
    [Indexed(code="b", tags=["u"]), Indexed(code="e", tags=["v"])],
    update_conflicts=True, update_fields=["tags"], unique_fields=["code"]), right()
Indexed.objects.bulk_create([Indexed(code="e", tags=["w"])], ignore_conflicts=True), right()
sql("UPDATE OR FAIL notes_indexed SET tags = '[\\"u\\",\\"v\\"]' WHERE code = 'e'"), right()
Indexed.objects.filter(code="e").delete(), right()
try:
    with transaction.atomic():
        Indexed.objects.create(code="f", tags=["lost"])
        raise KeyError
except KeyError:
    right()
Indexed.objects.all().delete(), right()
assert entries() == []
Keyed.objects.create(key="k", numbers=[1, 2]), Keyed.objects.create(key="1", numbers=[2])
assert set(Keyed.objects.filter(numbers__contains=[2]).values_list("key", flat=True)) == {"k", "1"}
assert Keyed.objects.get(numbers__contains=[1]).key == "k"
"""
    )


def test_what_replace_leaves_behind_changes_no_answer(indexed: ArraySite) -> None:
    indexed.run(
        START_INDEXED
        + """
Indexed.objects.create(pk=1, code="a", tags=["x"])
replace = "INSERT OR REPLACE INTO notes_indexed (id, code, tags, pairs) VALUES (%s, %s, %s, '[]')"
sql(replace, 1, "a", '["y"]'), sql(replace, 2, "a", '["y"]')
assert ("x", 1) in entries() and ("y", 2) in entries()
for name, of_name in (("x", 0), ("y", 1)):
    assert Indexed.objects.filter(tags__contains=[name]).count() == of_name
    assert Indexed.objects.filter(tags__overlap=[name]).count() == of_name
insert = replace.replace("REPLACE", "ABORT")
for _ in range(2):  # over what was left
    sql("DELETE FROM notes_indexed WHERE id = 1"), sql(insert, 1, "b", '["x"]')
"""
    )


def test_lookups_use_the_index_and_answer_the_same(indexed: ArraySite) -> None:
    indexed.run(
        START_INDEXED
        + """
import random
from oxlite.django import indexes
random.seed(7)
some = lambda: random.choices(["a", "b", "c", "d", None], k=random.randrange(5))
pairs = lambda: [[random.randrange(5), random.randrange(5)] for _ in range(random.randrange(3))]
Indexed.objects.bulk_create(
    Indexed(code=number, tags=random.choice([None, some()]), pairs=pairs())
    for number in range(300)
)
def codes(condition):
    return list(Indexed.objects.filter(condition).order_by("pk").values_list("pk", flat=True))
search = indexes.ArrayIndex.of
for _ in range(200):
    name, argument = random.choice([("tags", some()), ("pairs", pairs())])
    condition = Q(**{f"{name}__{random.choice(['contains', 'overlap'])}": argument})
    if random.random() < 0.3:
        condition = ~condition
    found = codes(condition)
    indexes.ArrayIndex.of = lambda column: None
    assert found == codes(condition), condition
    indexes.ArrayIndex.of = search
for argument in ({"tags__contains": ["a"]}, {"tags__overlap": "ab"}, {"pairs__contains": [[1, 2]]}):
    plan = Indexed.objects.filter(**{name: list(each) for name, each in argument.items()}).explain()
    assert "SEARCH notes_indexed USING INTEGER PRIMARY KEY" in plan, plan
    assert "SEARCH indexed_" in plan and "SCAN notes_indexed" not in plan, plan
one = Indexed.objects.filter(pk=OuterRef("pk"), tags__contains=["a"])
assert Indexed.objects.filter(Exists(one)).count() == len(codes(Q(tags__contains=["a"])))
assert Indexed.objects.filter(tags__contains=["a"]).update(code=F("code")) > 0
assert Indexed.objects.filter(tags__contains=["a"]).delete()[0] > 0
assert codes(Q(tags__contains=["a"])) == []
"""
    )


def test_migrations_make_an_index_again_with_its_table(indexed: ArraySite) -> None:
    indexed.run(START_INDEXED + "Indexed.objects.create(code='a', tags=['x', 'y'], pairs=[[1]])")
    right = (
        START_INDEXED
        + """
assert entries() == wanted("tags") != [], entries()
Indexed.objects.create(code="b", tags=["z"]), Indexed.objects.filter(code="a").update(tags=["y"])
assert entries() == wanted("tags")
Indexed.objects.filter(code="b").delete(), Indexed.objects.update(tags=["x", "y"])
assert entries() == wanted("tags")
"""
    )

    def change(before: str, after: str, check: str = right) -> None:
        text = (indexed.folder / "notes" / "models.py").read_text()
        assert before in text
        indexed.write("notes/models.py", text.replace(before, after))
        for command in (["makemigrations", "notes", "--noinput"], ["migrate"]):
            done = indexed.manage(*command, "--verbosity", "0")
            assert done.returncode == 0, done.stderr
        assert indexed.manage("makemigrations", "--check", "--dry-run").returncode == 0
        indexed.run(check)

    code = "    code = models.CharField(max_length=20, unique=True)"
    change(code, code.replace("20", "30"))  # the table is made anew
    change(code.replace("20", "30"), f"{code}\n    more = models.IntegerField(default=1)")
    change("    more = models.IntegerField(default=1)\n", "")
    change(
        "models.CharField(max_length=20), null=True", "models.CharField(max_length=9), null=True"
    )
    line = '            ArrayIndex(fields=["tags"], name="indexed_tags"),\n'
    change(
        line,
        "",
        """
assert sql("SELECT name FROM sqlite_schema WHERE name LIKE 'indexed_tags%%'") == []
""",
    )
    change(
        'fields=["pairs"]',
        'fields=["tags"]',
        """
assert sql("SELECT * FROM indexed_pairs ORDER BY 1") == [("x", 1), ("y", 1)]
""",
    )
    for name in ("0002", "0001", "zero"):
        done = indexed.manage("migrate", "notes", name, "--verbosity", "0")
        assert done.returncode == 0, done.stderr
    assert indexed.manage("sqlmigrate", "notes", "0001").stdout.count("CREATE TRIGGER") == 9
    left = indexed.script(
        "-c", "import oxlite; c = oxlite.connect('app.db'); print(c.execute(\"SELECT name FROM"
        " sqlite_schema WHERE name LIKE '%index%' OR type = 'trigger'\").fetchall())"
    )  # fmt: skip
    assert left.stdout.strip() == "[]", left.stderr


RENAMED = """
from django.db import migrations
from oxlite.django.indexes import ArrayIndex

class Migration(migrations.Migration):
    dependencies = [("notes", "0001_initial")]
    operations = [
        migrations.RenameField("indexed", "tags", "labels"),
        migrations.RenameModel("Indexed", "Marked"),
        migrations.RenameField("marked", "id", "number"),
        migrations.RunSQL("INSERT INTO notes_marked VALUES (9, 'c', '[\\"w\\"]', '[]')"),
        migrations.RenameField("marked", "number", "id"),
        migrations.RemoveIndex("marked", "indexed_tags"),
        migrations.AddIndex("marked", ArrayIndex(fields=["labels"], name="marked_labels")),
        migrations.RenameIndex("marked", old_name="indexed_pairs", new_name="marked_pairs"),
    ]
"""


def test_fields_models_and_indexes_may_be_renamed(indexed: ArraySite) -> None:
    indexed.run(START_INDEXED + "Indexed.objects.create(code='a', tags=['x', 'y'], pairs=[[1]])")
    indexed.write("notes/migrations/0002_renamed.py", RENAMED)
    text = (indexed.folder / "notes" / "models.py").read_text()
    for before, after in (
        ("class Indexed(", "class Marked("),
        ('fields=["tags"], name="indexed_tags"', 'fields=["labels"], name="marked_labels"'),
        ("indexed_pairs", "marked_pairs"),
        (
            "    tags = ArrayField(models.CharField(max_length=20), null",
            "    labels = ArrayField(models.CharField(max_length=20), null",
        ),
    ):
        assert before in text
        text = text.replace(before, after)
    indexed.write("notes/models.py", text)
    done = indexed.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    assert indexed.manage("makemigrations", "--check", "--dry-run").returncode == 0
    indexed.run("""
from notes.models import Marked
entries = lambda name: sql(f'SELECT value, "row" FROM {name} ORDER BY 1')
assert entries("marked_labels") == [("w", 9), ("x", 1), ("y", 1)], entries("marked_labels")
Marked.objects.filter(pk=1).update(labels=["z"], pairs=[[2]])
assert entries("marked_labels") == [("w", 9), ("z", 1)] and entries("marked_pairs") == [(2, 1)]
assert Marked.objects.get(labels__contains=["z"]).pk == 1
""")


def test_a_join_and_a_model_that_inherits_use_the_index(indexed: ArraySite) -> None:
    indexed.run(
        START_INDEXED
        + """
class Child(Indexed):
    more = ArrayField(models.IntegerField(), default=list)
    class Meta:
        app_label = "notes"
        indexes = [indexes.ArrayIndex(fields=["more"], name="child_more")]
class Link(models.Model):
    to = models.ForeignKey(Indexed, models.CASCADE, null=True, related_name="links")
    class Meta:
        app_label = "notes"
with connection.schema_editor() as editor:
    editor.create_model(Child), editor.create_model(Link)
a = Indexed.objects.create(code="a", tags=["x", "y"])
c = Child.objects.create(code="c", tags=["x"], more=[1, 2])
Link.objects.bulk_create([Link(to=a), Link(to=c), Link()])
count = lambda rows, **lookup: rows.objects.filter(**lookup).count()
assert count(Link, to__tags__contains=["x"]) == 2 and count(Link, to__tags__contains=["y"]) == 1
assert Link.objects.exclude(to__tags__contains=["y"]).count() == 2
assert count(Child, tags__contains=["x"], more__overlap=[2, 9]) == 1
assert count(Child, tags__contains=["y"]) == 0
assert count(Indexed, child__more__contains=[1]) == 1
either = Q(tags__contains=["y"]) | Q(links__to__tags__contains=["x"])
assert Indexed.objects.filter(either).distinct().count() == 2
has_y = models.Count("pk", filter=Q(tags__contains=["y"]))
assert Indexed.objects.aggregate(found=has_y) == {"found": 1}
with connection.schema_editor() as editor:
    editor.delete_model(Child)
assert sql("SELECT name FROM sqlite_schema WHERE name LIKE 'child%%'") == []
""".replace("class Child", "from oxlite.django import indexes\nclass Child", 1)
    )


def test_what_an_index_cannot_be_of_is_refused(indexed: ArraySite) -> None:
    indexed.run(
        START_INDEXED
        + """
from django.db import NotSupportedError
from oxlite.django.indexes import ArrayIndex
for fields in ([], ["tags", "pairs"], ["-tags"]):
    refused(ValueError, lambda: ArrayIndex(fields=fields, name="x"))
with connection.schema_editor() as editor:
    refused(FieldError, lambda: ArrayIndex(fields=["code"], name="x").create_sql(Indexed, editor))
    class Other:
        connection = connection
        quote_name = editor.quote_name
    index = ArrayIndex(fields=["tags"], name="x")
    refused(NotSupportedError, lambda: index.create_sql(Indexed, Other()))
assert index.clone() == index and index.deconstruct()[0] == "oxlite.django.indexes.ArrayIndex"
"""
    )
