"""The runner finds what is wrong with a page, and says where: each page here has one fault."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.documents import environment, installed, languages
from tests.documents.page import MalformedError, Page, read
from tests.documents.session import DiffersError, Session, matches

Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Plays a page that is given as its text, in which ''' is a fence."""

    def played(text: str, limit_seconds: float = 30) -> None:
        page = written(tmp_path, text)
        given = environment.variables(page, tmp_path / "machine")
        with Session(page, tmp_path / "page", given, limit_seconds) as session:
            for block in page.blocks:
                session.play(block)

    return played


def written(folder: Path, text: str) -> Page:
    file = folder / "told.md"
    file.write_text(text.replace("'''", "```"))
    return read(file)


# What goes well


def test_all_of_a_page_happens_in_one_place(play: Play) -> None:
    play("""
'''python title="parts/greeting.py"
WORD = "hello"
'''

'''python title="parts/greeting.py (at the end)"
WORD += " world"
'''

'''console
$ cd parts && name=ann
$ python -c "import greeting; print(greeting.WORD)"
hello world
$ echo one; echo two; \\
    echo three
one
...
'''

'''python
import greeting

number = 7
'''

Text between.

'''python
print(greeting.WORD, number)
'''

'''text
hello … 7
'''

'''console
$ echo $name
ann
'''
""")


def test_what_stays_in_the_background_is_waited_for_and_ended_by_the_page(play: Play) -> None:
    play("""
'''python title="application.py"
import time

time.sleep(3)  # longer than one waits who knows of no port

async def application(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})
'''

'''console
$ uvicorn --port 28651 --log-level warning application:application &
$ curl --silent http://127.0.0.1:28651/
hello
$ kill %1
$ (sleep 1; echo ready; sleep 60) &
ready
$ kill %1
'''
""")


def test_a_page_presupposes_what_stands_in_comments(play: Play) -> None:
    play("""
<!-- given: text title="note.txt"
hello
-->
<!-- given: console
$ cp note.txt copy.txt
-->
'''console
$ cat copy.txt
hello
'''
""")


def test_what_is_to_fail_may(play: Play) -> None:
    play("""
<!-- fails: there is no such file -->
'''console
$ echo before
before
$ cat nothing.txt
cat: nothing.txt: …
'''

<!-- fails: it is no number -->
'''python
int("x")
'''
""")


def test_what_varies_needs_only_to_go_well(play: Play) -> None:
    play("""
<!-- output varies: it is the time -->
'''console
$ date
Thu Jan  1 00:00:00 UTC 1970
'''
""")


# What does not


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "'''console\n$ true\n$ echo other\none\n'''",
            r"(?s)told.md:3: \$ echo other\n.*shows:\none\n.*is:\nother",
        ),
        ("'''console\n$ cat nothing.txt\n'''", r"(?s)told.md:2: \$ cat .*status 1.*No such file"),
        ("'''console\n$ exit 3\n'''", r"told.md:2: \$ exit 3\nended the shell"),
        ("'''console\n$ sleep 600\n'''", r"told.md:2: \$ sleep 600\ngave no answer for 2 s"),
        ("'''console\n$ sleep 600 &\n'''", r"(?s)told.md leaves this running:.*sleep 600"),
        ("'''console\n$ setsid --fork sleep 600\n'''", r"(?s)leaves this running:.*sleep 600"),
        ("'''console\n$ cat nothing.txt &\n'''", r"(?s)told.md:2: .*status 1.*No such file"),
        ("'''console\n$ sleep 600 &\nready\n'''", r"(?s)told.md:2: .*shows:\nready"),
        ("<!-- fails: so -->\n'''console\n$ true\n'''", r"told.md:3: \$ true\nwas to fail"),
        ("<!-- fails: so -->\n'''python\nx = 1\n'''", r"told.md:3: this Python was to fail"),
        ("'''python\nx = 1\n1 / 0\n'''", r"(?s)told.md:2: .*told.md\", line 3.*ZeroDivisionError"),
        (
            "'''python\nclass Query:\n    def __repr__(self):\n        return 1 / 0\nQuery()\n'''",
            r"(?s)told.md:2: .*told.md\", line 5.*ZeroDivisionError",
        ),
        ("'''python\nprint(1)\n'''\n'''text\n2\n'''", r"(?s)told.md:5\n.*shows:\n2\n.*is:\n1"),
        ("'''python\nimport os\nos._exit(3)\n'''", r"told.md:2: the interpreter gave no answer"),
        (
            "'''python\nimport threading\nthreading.Thread(target=threading.Event().wait).start()\n"
            "'''",
            r"its Python ended with no end",
        ),
        ("'''text title=\"../note.txt\"\nx\n'''", "told.md:2: ../note.txt is not in"),
        ("'''text title=\"a.txt (at the end)\"\nx\n'''", "told.md:2: there is no a.txt"),
        ("'''console\n$ pip install nothing-like-it\n'''", "not in the environment of the tests"),
    ],
)
def test_a_fault_is_found_and_placed(play: Play, text: str, message: str) -> None:
    with pytest.raises(DiffersError, match=message):
        play(text, limit_seconds=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'''console\noutput\n'''", "told.md:2: a session begins"),
        ("\n'''python\nx = 1\n", "told.md:2: this block has no end"),
        ("<!-- not run: a reason\n", "told.md:1: this comment has no end"),
        ("<!-- not run: a reason -->\nText.\n'''python\n'''", "stands before no block"),
    ],
)
def test_a_page_that_is_not_written_as_pages_are_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    page = written(tmp_path, text)
    with pytest.raises(MalformedError, match=message):
        _ = [block.language == "console" and block.commands for block in page.blocks]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'''cobol\nx\n'''", "nothing here reads “cobol”"),
        ("<!-- not run: so -->\n'''python\nx = = 1\n'''", "SyntaxError"),
        ("'''json\n{\n'''", "JSONDecodeError"),
        ("'''toml\nx = \n'''", "TOMLDecodeError"),
        ("'''yaml\nx: [\n'''", "ParserError"),
        ("'''sql\nSELECT * FROM note;\n'''", "no such table: note"),
        ("'''ini\nx\n'''", "MissingSectionHeaderError"),
        ("'''dockerfile\nFORM python\n'''", "no instruction: FORM python"),
        (
            "<!-- not run: so -->\n'''console\n$ oxlite doctor app.db --fixx\n'''",
            "No such option: --fixx",
        ),
        ("<!-- not run: so -->\n'''console\n$ oxlite bakcup\n'''", "unknown command 'bakcup'"),
    ],
)
def test_what_is_not_run_is_read(tmp_path: Path, text: str, message: str) -> None:
    page = written(tmp_path, text)
    with pytest.raises(languages.WrongError, match=message):
        languages.check(page, page.blocks[-1])


@pytest.mark.skipif(
    shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin") is None,
    reason="nginx is not here: run `make nginx`, or install it",
)
def test_nginx_reads_what_is_no_file(tmp_path: Path) -> None:
    good = written(tmp_path, "'''nginx\nlocation / { proxy_pass http://127.0.0.1:8000; }\n'''")
    assert languages.check(good, good.blocks[0]) is None
    bad = written(tmp_path, "'''nginx\nlocation / { proxy_pas http://127.0.0.1:8000; }\n'''")
    with pytest.raises(languages.WrongError, match="unknown directive"):
        languages.check(bad, bad.blocks[0])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_reads_its_units(tmp_path: Path) -> None:
    unit = "'''ini title=\"a.service\"\n[Service]\nExecStart=/srv/app\n{}\n'''"
    good = written(tmp_path, unit.format("Restart=always"))
    assert languages.check(good, good.blocks[0]) is None
    bad = written(tmp_path, unit.format("Restrat=always"))
    with pytest.raises(languages.WrongError, match="Restrat"):
        languages.check(bad, bad.blocks[0])


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        (["one", "two"], "one\ntwo\n", True),
        (["one", "..."], "one\n", True),
        (["one", "...", "three"], "one\ntwo\nthree\n", True),
        (["…", "three"], "one\ntwo\nthree\n", True),
        (["at … o'clock"], "at 7 o'clock\n", True),
        (["at … o'clock"], "at 7\no'clock\n", False),
        (["one"], "one\ntwo\n", False),
        (["one", "...", "three"], "one\ntwo\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_an_output_is_compared_as_it_is(shown: list[str], output: str, same: bool) -> None:
    assert matches(shown, output) is same


def test_what_is_asked_of_pip_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert installed.main(["install", "--quiet", "oxlite[cli]", "pytest>=1"]) == 0
    assert installed.main(["install", "oxlite[nonsense]"]) == 1
    assert "the extra nonsense of oxlite" in capsys.readouterr().err
    assert installed.main(["install", "pytest>=1000"]) == 1
    assert installed.main(["uninstall", "pytest"]) == 2


def test_a_page_finds_no_settings_of_this_user(tmp_path: Path) -> None:
    page = written(tmp_path, "")
    given = environment.variables(page, tmp_path / "machine")
    assert given["HOME"] != os.environ.get("HOME")
    assert not {name for name in given if "TOKEN" in name or "SECRET" in name}
