"""The page of tasks in the admin, by Django's client and in a real browser."""

import os
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from conftest import Site

if not find_spec("django.tasks") and not find_spec("django_tasks"):
    pytest.skip("Django before 6.0, without django-tasks", allow_module_level=True)

SETTINGS = """
INSTALLED_APPS += [
    "oxlite.django.tasks", "django.contrib.admin", "django.contrib.auth",
    "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages",
    "django.contrib.staticfiles",
]
DEBUG = True
STATIC_URL = "static/"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
TASKS = {
    "default": {
        "BACKEND": "oxlite.django.tasks.OxliteBackend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": {},
    }
}
"""

TASKS = """
from oxlite.django.tasks import task

@task
def mail(address):
    if "@" not in address:
        raise ValueError(f"no address: {address}")
    return f"sent to {address}"

@task(unique_key="one")
def only():
    raise ValueError("only once")
"""

URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""

USE = """
import logging
logging.disable(logging.CRITICAL)
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import setup_test_environment
from notes.tasks import mail, only
from oxlite.django.tasks import run_ready_tasks
setup_test_environment()
PAGE = "/admin/oxlite_tasks/storedtask/"

def client(*permissions):
    user = User.objects.create_user(f"user {permissions}", password="x", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(codename__in=[f"{each}_storedtask" for each in permissions]))
    found = Client()
    found.force_login(user)
    return found

def act(client, action, *tasks):
    answer = client.post(
        PAGE, {"action": action, "_selected_action": [each.id for each in tasks]}, follow=True)
    return [str(each) for each in answer.context["messages"]]
"""


@pytest.fixture
def admin_site(site: "Site") -> "Site":
    """A site with tasks and the admin."""
    site.set(SETTINGS)
    site.write("notes/tasks.py", TASKS)
    site.write("urls.py", URLS)
    done = site.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    return site


def lines(site: "Site", script: str) -> list[str]:
    return site.run(USE + script).splitlines()


def test_what_is_done_by_hand(admin_site: "Site") -> None:
    assert lines(
        admin_site,
        """
browser = client("view", "change", "delete")
good, bad, waiting = mail.enqueue("a@b"), mail.enqueue("a"), only.enqueue()
run_ready_tasks()
mail.using(queue_name="mails").enqueue("c@d")
print(*act(browser, "run_again", good, bad))
bad.refresh()
print(bad.status)
other = only.enqueue()
print(*act(browser, "run_again", waiting))
print(*act(browser, "discard", good, waiting))
from django.contrib.admin.models import LogEntry
print([(each.object_repr, each.action_flag, each.change_message)
       for each in LogEntry.objects.order_by("id")])
print("Run again." in browser.get(f"{PAGE}{bad.id}/history/").content.decode())
for query in ("?q=mail", "?q=a%40b", "?status__exact=failed", "?queue=mails", "?o=7"):
    print(browser.get(PAGE + query).context["cl"].result_count)
""",
    ) == [
        "1 task is ready again. 1 task is left as before: only what has failed or did not run is.",
        "READY",
        "3 notes.tasks.only: another task with the same unique key waits or runs.",
        "2 tasks are discarded.",
        "[('2 notes.tasks.mail', 2, 'Run again.'), ('3 notes.tasks.only', 3, ''),"
        " ('1 notes.tasks.mail', 3, '')]",
        "True",
        *("2", "0", "0", "1", "3"),
    ]


def test_who_may_do_what(admin_site: "Site") -> None:
    assert lines(
        admin_site,
        """
bad = mail.enqueue("a")
run_ready_tasks()
for permissions in ((), ("view",), ("change",), ("delete",)):
    browser = client(*permissions)
    answer = browser.get(PAGE)
    actions = [] if answer.status_code != 200 else [
        value for value, _ in answer.context["action_form"].fields["action"].choices if value
    ] if answer.context["action_form"] else []
    print(permissions, answer.status_code, actions, browser.get(PAGE + "add/").status_code,
          browser.post(f"{PAGE}{bad.id}/delete/").status_code)
""",
    ) == [
        "() 403 [] 403 403",
        "('view',) 200 [] 403 403",
        "('change',) 200 ['run_again'] 403 403",
        "('delete',) 200 ['discard'] 403 403",
    ]


def test_what_others_wrote_is_text_and_is_shown(admin_site: "Site") -> None:
    assert (
        lines(
            admin_site,
            """
from django.db import connection
bad = mail.enqueue("<script>alert(1)</script>")
run_ready_tasks()
with connection.cursor() as cursor:
    cursor.execute(
        "INSERT INTO oxlite_task (name, arguments, errors, result, status) VALUES "
        "('<b>', '<i>', '[1]', '<u>', 'failed') RETURNING id")
    [number] = cursor.fetchone()
browser = client("view")
for page in (PAGE, f"{PAGE}{bad.id}/change/", f"{PAGE}{number}/change/"):
    answer = browser.get(page)
    text = answer.content.decode()
    print(answer.status_code, [each in text for each in ("<script>alert", "<b>", "<i>", "<u>")])
""",
        )
        == ["200 [False, False, False, False]"] * 3
    )


def test_what_is_no_text_is_shown_as_well_as_can_be(admin_site: "Site") -> None:
    assert (
        lines(
            admin_site,
            """
from django.db import connection
mail.enqueue("a@b")
with connection.cursor() as cursor:
    for value in ("x'70ff71'", "CAST(x'70ff71' AS TEXT)"):
        cursor.execute(
            "INSERT INTO oxlite_task (queue, name, arguments, worker, errors, result, status)"
            f" VALUES ({', '.join([value] * 6)}, 'failed')")
browser = client("view")
for page in (PAGE, f"{PAGE}2/change/", f"{PAGE}3/change/", PAGE + "?q=mail"):
    answer = browser.get(page)
    print(answer.status_code, "p\ufffdq" in answer.content.decode())
""",
        )
        == ["200 True"] * 4
    )


def test_a_file_of_its_own_has_no_page(admin_site: "Site") -> None:
    admin_site.set("TASKS['default']['OPTIONS'] = {'path': BASE_DIR / 'tasks.db'}")
    assert lines(
        admin_site,
        """
browser = client("view")
print(browser.get(PAGE).status_code, "storedtask" in browser.get("/admin/").content.decode())
""",
    ) == ["200 False"]


@pytest.mark.slow
def test_in_a_browser(admin_site: "Site", browser: "Browser") -> None:
    lines(
        admin_site,
        """
User.objects.create_superuser("root", password="secret")
mail.enqueue("ann@example.org")
mail.enqueue("<b>bob</b>")
run_ready_tasks()
mail.using(queue_name="mails", priority=5).enqueue("cy@example.org")
""",
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = admin_site.folder / "server.log"
    with log.open("w") as file:
        admin_site.start_manage("runserver", address, "--noreload", terminal=file.fileno())
    host, _, port = address.partition(":")

    def is_serving() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    until(is_serving)
    page = browser.new_page(viewport={"width": 1300, "height": 800})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"http://{address}/admin/")
    page.fill("#id_username", "root")
    page.fill("#id_password", "secret")
    page.click("input[type=submit]")
    page.click("text=Tasks >> nth=-1")
    page.wait_for_selector("#result_list")
    shots = os.environ.get("SCREENSHOTS")

    def shoot(name: str) -> None:
        if shots:
            page.screenshot(path=Path(shots) / f"{name}.png", full_page=True)

    def statuses() -> list[str]:
        return page.locator("#result_list tbody td.field-status").all_inner_texts()

    assert statuses() == ["ready", "failed", "successful"]
    assert "failed (1)" in page.locator("#changelist-filter").inner_text()
    shoot("list")
    page.click("#result_list tbody tr:nth-child(2) th a")
    raised = page.locator(".field-raised")
    assert "no address: <b>bob</b>" in raised.inner_text()
    assert page.locator("input[name=_save]").count() == 0
    shoot("detail")
    page.go_back()

    def act(action: str, row: int) -> str:
        page.check(f"#result_list tbody tr:nth-child({row}) input.action-select")
        page.select_option("select[name=action]", action)
        page.click("button[name=index]")
        return page.locator(".messagelist").inner_text()

    assert "1 task is ready again." in act("run_again", 2)
    assert statuses() == ["ready", "ready", "successful"]
    assert "1 task is discarded." in act("discard", 3)
    assert statuses() == ["ready", "ready"]
    shoot("after")
    assert complaints == []
