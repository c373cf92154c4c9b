"""``ArrayField``: what is kept, what is refused, and what queries answer, as PostgreSQL does."""

import json
from pathlib import Path

import pytest
from tests.django import conftest
from tests.django.array_site import FUNCTION, MODELS, ArraySite, copied


@pytest.fixture(scope="module")
def with_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of such a site with its tables."""
    site = ArraySite(tmp_path_factory.mktemp("arrays") / "site")
    site.write("notes/models.py", conftest.MODELS + FUNCTION + MODELS)
    site.migrate()
    return site.folder


@pytest.fixture
def arrays(tmp_path: Path, with_tables: Path) -> ArraySite:
    """A site with empty tables."""
    return copied(with_tables, tmp_path)


def test_a_value_of_each_kind_comes_back_as_it_was(arrays: ArraySite) -> None:
    arrays.run("""
kept = Kinds.objects.create(**VALUES)
found = Kinds.objects.get()
for name, value in VALUES.items():
    assert repr(getattr(found, name)) == repr(value), (name, getattr(found, name))
for name, value in VALUES.items():
    (of_values,) = Kinds.objects.values_list(name, flat=True)
    assert repr(of_values) == repr(value)
    assert Kinds.objects.filter(**{name: value}).exists(), name
    assert not Kinds.objects.exclude(**{name: value}).exists(), name
    Kinds.objects.update(**{name: value})
    Kinds.objects.filter(**{f"{name}__in": [value, []]}).get()
Kinds.objects.bulk_update([found], list(VALUES))
for name, value in VALUES.items():
    assert repr(getattr(Kinds.objects.get(), name)) == repr(value), name
""")


def test_each_element_is_found_whatever_kind_it_is_of(arrays: ArraySite) -> None:
    arrays.run("""
Kinds.objects.create(**VALUES)
Kinds.objects.create()
for name, value in VALUES.items():
    for number, each in enumerate(value):
        if each is None:
            continue
        for lookup in ("contains", "overlap"):
            assert Kinds.objects.filter(**{f"{name}__{lookup}": [each]}).count() == 1, (name, each)
        if name != "grid":
            # An object is a text, to JSON; Django takes such a text for a document.
            found = Kinds.objects.filter(**{f"{name}__{number}__isnull": False})
            (element,) = found.values_list(f"{name}__{number}", flat=True)
            if name != "prices":
                assert repr(element) == repr(each), (name, element)
            if name not in ("things", "prices"):
                assert found.filter(**{f"{name}__{number}": each}).count() == 1, (name, each)
    assert Kinds.objects.filter(**{f"{name}__len": len(value)}).count() == 1
    (some,) = Kinds.objects.filter(**{f"{name}__len__gt": 0}).values_list(f"{name}__1_3", flat=True)
    assert repr(some) == repr(value[1:3]), (name, some)
assert Kinds.objects.filter(prices__1__lt=0, prices__2__gt=Decimal("1.4")).count() == 1
assert Kinds.objects.filter(grid__0__1=-2, grid__1__0_1=[0]).count() == 1
""")


# What PostgreSQL answers: the array, the lookup, its argument.
ANSWERS = [
    ([1, 2, 3], "contains", [2], True),
    ([1, 2, 3], "contains", [3, 1, 3], True),
    ([1, 2, 3], "contains", [1, 4], False),
    ([1, 2, 3], "contains", [], True),
    ([], "contains", [], True),
    ([], "contains", [1], False),
    ([1, None], "contains", [1], True),
    ([1, None], "contains", [None], False),
    ([1, None], "contains", [1, None], False),
    (None, "contains", [], None),
    (None, "contains", [1], None),
    ([1, 1], "contained_by", [1, 2], True),
    ([1, 3], "contained_by", [1, 2], False),
    ([], "contained_by", [1], True),
    ([], "contained_by", [], True),
    ([None], "contained_by", [None], False),
    (None, "contained_by", [1], None),
    ([1, 2], "overlap", [2, 9], True),
    ([1, 2], "overlap", [9], False),
    ([], "overlap", [], False),
    ([1, 2], "overlap", [], False),
    ([None], "overlap", [None], False),
    ([None, 1], "overlap", [1], True),
    (None, "overlap", [1], None),
    ([1, 2], "exact", [1, 2], True),
    ([1, 2], "exact", [2, 1], False),
    ([], "exact", [], True),
    (None, "exact", [], None),
    ([2], "gt", [10], False),
    ([10], "gt", [2], True),
    ([1, 2], "gt", [1], True),
    ([1], "gt", [1], False),
    ([1], "gte", [1], True),
    ([None], "gt", [5], True),
    ([], "lt", [None], True),
    ([1, 2], "lt", [1, 10], True),
    ([1, 10], "lte", [1, 2], False),
    (None, "lt", [1], None),
    ([], "len", 0, True),
    ([1, None], "len", 2, True),
    (None, "len", 0, None),
    ([1, 2], "0", 1, True),
    ([1, 2], "2", 1, None),
    ([None], "0__isnull", True, True),
    ([], "0__isnull", True, True),
    ([1, 2], "0__lt", 2, True),
    ([1, 2, 3], "0_2", [1, 2], True),
    ([1, 2, 3], "1_9", [2, 3], True),
    ([1, 2, 3], "5_9", [], True),
    ([1, 2, 3], "2_1", [], True),
    ([None, 1], "0_1", [None], True),
    ([1, 2, 3], "0_2__contains", [3], False),
    ([1, 2, 3], "1_3__0", 2, True),
    (None, "0_1", [], None),
]


def test_a_lookup_answers_as_postgresql_does(arrays: ArraySite) -> None:
    arrays.run(f"""
for array, lookup, argument, answer in {ANSWERS!r}:
    Row.objects.all().delete()
    Row.objects.create(numbers=array)
    condition = Q(**{{f"numbers__{{lookup}}": argument}})
    said = array, lookup, argument
    assert Row.objects.filter(condition).exists() is (answer is True), said
    # Django adds to an exclude() that what is NULL is not excluded.
    assert Row.objects.exclude(condition).exists() is (answer is False or array is None), said
    if answer is not None:
        assert Row.objects.filter(~condition).exists() is not answer, said
    if "isnull" not in lookup:
        (found,) = Row.objects.annotate(found=condition).values_list("found", flat=True)
        assert found is answer, (said, found)
""")


def test_the_order_is_that_of_elements_of_each_kind(arrays: ArraySite) -> None:
    arrays.run("""
Kinds.objects.create(prices=[Decimal("9.00")], grid=[[1, 2], [3, 10]], texts=["b"])
assert Kinds.objects.filter(prices__lt=[Decimal("10.00")]).exists()
assert not Kinds.objects.filter(prices__gt=[Decimal("10.00")]).exists()
assert Kinds.objects.filter(grid__gt=[[1, 2], [3, 9]]).exists()
assert Kinds.objects.filter(texts__gt=["a", "z"], texts__lte=["b"]).exists()
""")


def test_arrays_in_arrays_are_looked_at_element_by_element(arrays: ArraySite) -> None:
    arrays.run("""
Box.objects.create(sides=[[1, 2], [3, 4]])
find = lambda **lookup: Box.objects.filter(**lookup).count()
assert find(sides__contains=[[1, 4]]) == find(sides__contains=[[3, 4], [2, 1]]) == 1
assert find(sides__contains=[[5]]) == find(sides__overlap=[[5]]) == 0
assert find(sides__overlap=[[5, 4]]) == find(sides__contained_by=[[1, 2, 3], [4, 5, 6]]) == 1
assert find(sides__0=[1, 2]) == find(sides__1__0=3) == find(sides__len=2) == 1
assert find(sides__0__len=2) == find(sides__1_2=[[3, 4]]) == find(sides__0__0_1=[1]) == 1
assert find(sides__1__contains=[4]) == 1
assert find(sides__gt=[[1, 2, 3, 4]]) == find(sides__lt=[[1], [2], [3], [4]]) == 1
assert find(sides__gte=[[1, 2], [3, 4]]) == 1 and find(sides__gt=[[1, 2], [3, 4]]) == 0
field = Box.sides.field
assert "same length" in refused(ValidationError, field.clean, [[1], [2, 3]], None)
""")


def test_expressions_and_queries_may_stand_at_the_right(arrays: ArraySite) -> None:
    arrays.run("""
first = Row.objects.create(numbers=[1, 2], number=2)
Row.objects.create(numbers=[5], number=9)
find = lambda **lookup: list(Row.objects.filter(**lookup).values_list("pk", flat=True))
assert find(numbers__contains=[F("number"), 1]) == [first.pk]
assert find(numbers__contains=[Value(1)]) == find(numbers__0=F("number") - 1) == [first.pk]
assert find(numbers=[1, F("number")]) == find(numbers__overlap=(F("number"),)) == [first.pk]
numbers = Row.objects.order_by("-number").values("number")
assert find(numbers__overlap=numbers) == [first.pk]
assert find(numbers__overlap=Row.objects.filter(pk=first.pk).values("numbers")) == [first.pk]
assert find(numbers__contained_by=Row.objects.values("numbers")[:1]) == [first.pk]
assert find(numbers__contains=F("numbers")) == find(numbers__contained_by=F("numbers"))
others = Row.objects.filter(numbers__overlap=OuterRef("numbers"))
assert Row.objects.filter(Exists(others.exclude(pk=OuterRef("pk")))).count() == 0
assert Row.objects.annotate(two=F("numbers")[0:2]).values_list("two", flat=True)[0] == [1, 2]
assert Row.objects.annotate(one=F("numbers")[1]).values_list("one", flat=True)[0] == [2]
assert Row.objects.order_by("-numbers__0").first().numbers == [5]
fixed = Value([1, 2], output_field=ArrayField(models.IntegerField()))
assert Row.objects.annotate(fixed=fixed).first().fixed == [1, 2]
Row.objects.update(numbers=F("numbers"))
kinds = Kinds.objects.create(price="1.5", prices=["1.5"], flags=[True], blobs=[b"a"])
assert Kinds.objects.filter(prices=[F("price")], flags=[Value(True)], blobs=[Value(b"a")]).exists()
assert Kinds.objects.filter(prices__overlap=Kinds.objects.values("price")).exists()
for wrong in (2, "2", {2}):
    assert "takes a list" in refused(FieldError, lambda: find(numbers__contains=wrong)), wrong
""")


def test_what_is_no_array_is_refused_by_the_database(arrays: ArraySite) -> None:
    arrays.run("""
insert = "INSERT INTO notes_row (number, numbers) VALUES (0, %s)"
wrong = ['{"a":1}', "5", "null", '"[]"', "no JSON", "[1,", "", "[1, 2]", "[1,]", 5, 1.5, b"[1]"]
for text in wrong:
    assert "CHECK" in refused(IntegrityError, sql, insert, text), text
sql(insert, "[1]"), sql(insert, "[]"), sql(insert, None)
assert "CHECK" in refused(IntegrityError, lambda: Row.objects.create(numbers="x"))
assert "CHECK" in refused(IntegrityError, lambda: Post.objects.create(tags=["a", "b", "c", "d"]))
assert "NOT NULL" in refused(IntegrityError, lambda: Post.objects.create(tags=None))
assert "64 bits" in refused(OverflowError, lambda: Row.objects.create(numbers=[2**63]))
for number in (float("inf"), float("nan")):
    assert "NaN" in refused(ValueError, lambda: Kinds.objects.create(floats=[number]))
refused(ValueError, lambda: Row.objects.create(numbers=["x"]))
assert Row.objects.count() == 3 and not Kinds.objects.exists()

# Of a table that another program has made.
sql("ALTER TABLE notes_row RENAME TO old"), sql("CREATE TABLE notes_row (id, number, numbers)")
for text in wrong:
    if text not in ("[1, 2]", b"[1]"):
        sql("DELETE FROM notes_row"), sql("INSERT INTO notes_row VALUES (1, 0, %s)", text)
        assert "no array in JSON" in refused(DataError, Row.objects.get), text
""")


def test_ten_thousand_elements(arrays: ArraySite) -> None:
    arrays.run("""
many = list(range(10_000))
Row.objects.create(numbers=many)
find = lambda **lookup: Row.objects.filter(**lookup).count()
assert Row.objects.get().numbers == many
assert find(numbers=many) == find(numbers__contains=many) == find(numbers__contained_by=many) == 1
assert find(numbers__overlap=[9_999]) == find(numbers__overlap=[*range(-10_000, 1)]) == 1
assert find(numbers__contains=[9_999, 10_000]) == find(numbers__overlap=[10_000]) == 0
assert find(numbers__gte=many) == find(numbers__len=10_000) == find(numbers__9999=9_999) == 1
assert find(numbers__9998_10000=[9_998, 9_999]) == find(numbers__0_10000=many) == 1
""")


def test_fixtures_and_forms_have_what_djangos_field_has(arrays: ArraySite) -> None:
    arrays.run("""
from django.core import serializers
kept = Kinds.objects.create(**{**VALUES, "things": [], "blobs": []})
row = Row.objects.create(numbers=None)
for kind in ("json", "xml", "jsonl", "python"):
    written = serializers.serialize(kind, [kept, row])
    kept.delete(), row.delete()
    for each in serializers.deserialize(kind, written):
        each.save()
    assert Row.objects.get().numbers is None
    kept, row = Kinds.objects.get(), Row.objects.get()
    for name, value in VALUES.items():
        if name not in ("things", "blobs"):
            assert repr(getattr(kept, name)) == repr(value), (kind, name)
(written,) = json.loads(serializers.serialize("json", [Row(numbers=[1, None])]))
assert written["fields"]["numbers"] == '["1", null]'
field = Row.numbers.field
for text in ("5", "x", '{"a": 1}'):
    assert "no array" in refused(ValidationError, field.to_python, text)

from django import forms
class PostForm(forms.ModelForm):
    class Meta:
        model, fields = Post, ["tags"]
form = PostForm({"tags": "a, b"})
post = form.save()
assert Post.objects.get().tags == ["a", "b"]
assert 'value="a,b"' in str(PostForm(instance=post))
assert not PostForm({"tags": "a,b", "initial-tags": "a,b"}, instance=post).has_changed()
assert PostForm({"tags": "a,c", "initial-tags": "a,b"}, instance=post).has_changed()
assert PostForm({"tags": ""}, instance=post).save().tags == []
assert PostForm({"tags": "a,b,c,d"}).errors == {
    "tags": ["List contains 4 items, it should contain no more than 3."]}
(error,) = PostForm({"tags": "a," + "b" * 21}).errors["tags"]
assert error.startswith("Item 2 in the array did not validate:"), error
""")


ADMIN = """
INSTALLED_APPS += ["django.contrib." + name for name in (
    "admin", "auth", "contenttypes", "messages", "sessions")]
MIDDLEWARE += [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware"]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages"]}}]
STATIC_URL = "static/"
"""


def test_the_admin_lists_and_changes_arrays(arrays: ArraySite) -> None:
    arrays.set(ADMIN)
    arrays.write(
        "urls.py",
        """
from django.contrib import admin
from django.urls import path
from notes.models import Post, Row
admin.site.register(Post, list_display=["tags"])
admin.site.register(
    Row, list_display=["numbers"], list_editable=["numbers"], list_display_links=None)
urlpatterns = [path("admin/", admin.site.urls)]
""",
    )
    assert arrays.manage("migrate", "--verbosity", "0").returncode == 0
    arrays.run("""
from django.contrib.auth.models import User
from django.test import Client
client = Client()
client.force_login(User.objects.create_superuser("root", "", "root"))
def sent(path, **data):
    answer = client.post(f"/admin/notes/{path}", data)
    assert answer.status_code == 302, answer.content.decode()
sent("post/add/", tags="a, b", **{"initial-tags": ""})
post = Post.objects.get()
assert post.tags == ["a", "b"]
page = client.get(f"/admin/notes/post/{post.pk}/change/").content.decode()
assert 'value="a,b"' in page
assert "a, b" in client.get("/admin/notes/post/").content.decode()
page = client.post("/admin/notes/post/add/", {"tags": "a,b,c,d"}).content.decode()
assert "no more than 3" in page
sent(f"post/{post.pk}/change/", tags="", **{"initial-tags": "a,b"})
post.refresh_from_db()
assert post.tags == []
row = Row.objects.create(numbers=[1])
form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": row.pk, "_save": "Save"}
sent("row/", **form, **{"form-0-numbers": "2,3"})
row.refresh_from_db()
assert row.numbers == [2, 3]
sent("row/add/", numbers="4", number="1")
assert Row.objects.filter(numbers__contains=[4]).exists()
""")


def test_no_driver_for_postgresql_is_needed(arrays: ArraySite) -> None:
    arrays.write(
        "sitecustomize.py", "import sys\nsys.modules.update(psycopg=None, psycopg2=None)\n"
    )
    arrays.run("""
assert sys.modules["psycopg"] is None
import oxlite.django.forms
Row.objects.create(numbers=[1])
assert Row.numbers.field.formfield().clean("1,2") == [1, 2]
""")


FIRST = "    tags = ArrayField(models.CharField(max_length=20), size=3, default=list, blank=True)"

MORE = "    more = ArrayField(models.IntegerField(), default=one_and_two)"


def test_migrations_add_change_and_remove_a_field(arrays: ArraySite) -> None:
    def change(before: str, after: str) -> None:
        text = (arrays.folder / "notes" / "models.py").read_text()
        assert before in text
        arrays.write("notes/models.py", text.replace(before, after))
        for command in (["makemigrations", "notes", "--noinput"], ["migrate"]):
            done = arrays.manage(*command, "--verbosity", "0")
            assert done.returncode == 0, done.stderr
        assert arrays.manage("makemigrations", "--check", "--dry-run").returncode == 0

    assert arrays.manage("makemigrations", "--check", "--dry-run").returncode == 0
    (migration,) = (arrays.folder / "notes" / "migrations").glob("0001*.py")
    assert "oxlite.django.fields.ArrayField(base_field=models" in migration.read_text()
    arrays.run("Post.objects.create(tags=['a', 'b'])")
    change(FIRST, f"{FIRST}\n{MORE}")
    arrays.run("assert Post.objects.get().more == [1, 2]")
    change("size=3, ", "size=2, ")
    arrays.run("refused(IntegrityError, lambda: Post.objects.create(tags=['a', 'b', 'c']))")
    change("size=2, ", "")
    arrays.run("Post.objects.create(tags=['a', 'b', 'c', 'd'])")
    change(f"\n{MORE}", "")
    arrays.run("assert Post.objects.count() == 2")
    done = arrays.manage("migrate", "notes", "0001", "--verbosity", "0")
    # Four elements do not go back into a column for three.
    assert done.returncode == 1
    assert "CHECK constraint failed" in done.stderr
    arrays.run("Post.objects.exclude(tags__len__lte=2).delete()")
    for name in ("0001", "zero"):
        done = arrays.manage("migrate", "notes", name, "--verbosity", "0")
        assert done.returncode == 0, done.stderr


def test_checks_have_the_numbers_of_djangos_field(arrays: ArraySite) -> None:
    arrays.set('DATABASES["other"] = {"ENGINE": "django.db.backends.dummy"}')
    found = arrays.run("""
def numbers(field, **arguments):
    field.set_attributes_from_name("field")
    return [each.id for each in field.check(**arguments)]
print(json.dumps([
    numbers(ArrayField(models.CharField(max_length=0))),
    numbers(ArrayField(models.ForeignKey("notes.Note", models.CASCADE))),
    numbers(ArrayField(models.IntegerField(), default=[])),
    numbers(ArrayField(models.IntegerField(max_length=3))),
    numbers(ArrayField(ArrayField(models.IntegerField()))),
    [each.id for each in Row.numbers.field.check(databases=["default"])],
    [each.id for each in Row.numbers.field.check(databases=["default", "other"])],
]))
""")
    assert json.loads(found) == [
        ["postgres.E001"], ["postgres.E002"], ["fields.E010"], ["postgres.W004"], [], [],
        ["oxlite.E002"],
    ]  # fmt: skip
