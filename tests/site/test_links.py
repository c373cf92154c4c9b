"""What a page links to in the repository, it links to on the site."""

from pathlib import Path

import pytest
from scripts.site import links


@pytest.mark.parametrize(
    ("source", "written", "expected"),
    [
        ("docs/django.md", "[x](wal.md#pages)", "[x](wal.md#pages)"),
        ("docs/decisions/0001-own-sqlite.md", "[x](../wal.md)", "[x](../wal.md)"),
        ("docs/django.md", "[x](../CHANGELOG.md)", "[x](project/changelog.md)"),
        (
            "docs/decisions/0001-own-sqlite.md",
            "[x](../../README.md#a)",
            "[x](../project/readme.md#a)",
        ),
        ("README.md", "[x](docs/wal.md)", "[x](../wal.md)"),
        ("README.md", "[x](DESIGN.md)", "[x](design.md)"),
        ("README.md", "![x](docs/pictures/kv.svg)", "![x](../pictures/kv.svg)"),
        ("docs/django.md", "[x](../LICENSE)", f"[x]({links.REPOSITORY}/blob/main/LICENSE)"),
        ("docs/django.md", "[x](../tests)", f"[x]({links.REPOSITORY}/tree/main/tests)"),
        ("docs/django.md", "[x]: ../LICENSE", f"[x]: {links.REPOSITORY}/blob/main/LICENSE"),
        ("docs/django.md", "[x](https://a.org/)", "[x](https://a.org/)"),
        ("README.md", f"[x]({links.SITE}wal/#a)", "[x](../wal.md#a)"),
        ("README.md", f"[x]({links.SITE}project/design/)", "[x](design.md)"),
        ("README.md", f"[x]({links.SITE}benchmarks/)", "[x](../benchmarks/index.md)"),
        ("README.md", f"[x]({links.SITE})", "[x](../index.md)"),
        ("README.md", f"![x]({links.SITE}pictures/a.svg)", "![x](../pictures/a.svg)"),
        ("docs/django.md", "[x](#here)", "[x](#here)"),
        ("docs/django.md", "[x](../nothing.md)", "[x](../nothing.md)"),
        ("docs/django.md", "`[x](../LICENSE)`", "`[x](../LICENSE)`"),
        ("docs/django.md", "```\n[x](../LICENSE)\n```", "```\n[x](../LICENSE)\n```"),
    ],
)
def test_a_link_is_the_sites(source: str, written: str, expected: str, root: Path) -> None:
    assert links.for_site(written, source, root) == expected


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What can be lost", "what-can-be-lost"),
        ("`oxlite bench kv`", "oxlite-bench-kv"),
        ("Threads, and the GIL", "threads-and-the-gil"),
        ("Before \N{EN DASH} after", "before--after"),
        ("durable_commit", "durable_commit"),
    ],
)
def test_a_heading_has_the_anchor_that_github_gives_it(heading: str, anchor: str) -> None:
    assert links.slug(heading) == anchor
