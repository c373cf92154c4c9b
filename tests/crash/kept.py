"""Violations in folders: the image, and the recording that it comes from, to be looked at again."""

import json
import pickle
import re
import shutil
from pathlib import Path

from tests.crash.disk import Content, Disk
from tests.crash.ledger import Promises
from tests.crash.log import Event, Kind
from tests.crash.recording import Recording
from tests.crash.shapes import Image
from tests.crash.verdict import COPY, Opener, digest_of

_EVENTS_SHOWN = 30


def save(folder: Path, recording: Recording, point: int, image: Image, what: str) -> Path:
    """Keeps a violation; where."""
    play = recording.play
    name = f"{play.workload} {play.profile} {play.seed} {point} {image.shape}"
    place = folder / re.sub(r"\W+", "-", name)
    shutil.rmtree(place, ignore_errors=True)
    files = place / "image"
    files.mkdir(parents=True)
    for file, content in image.content.items():
        (files / file).write_bytes(content)
    (place / "recording.pickle").write_bytes(pickle.dumps(recording))
    facts = {"play": play.as_json(), "point": point, "shape": image.shape, "what": what}
    (place / "violation.json").write_text(json.dumps(facts, indent=2) + "\n")
    return place


def show(place: Path) -> list[str]:
    """What is in such a folder, judged anew."""
    facts = json.loads((place / "violation.json").read_text())
    # It was written by the laboratory, on this machine.
    recording: Recording = pickle.loads((place / "recording.pickle").read_bytes())
    content = {path.name: path.read_bytes() for path in (place / "image").iterdir()}
    point = facts["point"]
    lines = [f"{recording.play}", f"point {point}, {facts['shape']}: {facts['what']}", ""]
    disk = Disk(recording.base)
    with Opener() as opener:
        opener.learn(recording.final)
        promises = Promises(opener.final, recording.play.is_durable)
        for number, event in enumerate(recording.events[:point], 1):
            if event.kind is Kind.MARK:
                promises.apply(event)
            else:
                disk.apply(event)
            if number > point - _EVENTS_SHOWN:
                lines.append(f"  {number:5}  {_told(event)}")
        ledger, copy = opener.find(content, digest_of(content))
    lines += ["", *_differences(disk, content), ""]
    lines.append(f"acknowledged: {promises.required} entries of {len(opener.final)}")
    lines.append(f"found: {ledger}")
    found = promises.judge(ledger) + (promises.judge_copy(copy) if COPY in content else [])
    lines.append(f"wrong: {'; '.join(found) or 'nothing'}")
    return lines


def _told(event: Event) -> str:
    who = f"{event.process}.{event.thread}"
    if event.kind in {Kind.OPEN, Kind.UNLINK, Kind.MARK}:
        return f"{who} {event.kind.name} {event.content.decode()}"
    length = f", {len(event.content)} bytes" if event.content else ""
    return f"{who} {event.kind.name} of {event.file} {event.first}{length}"


def _differences(disk: Disk, content: Content) -> list[str]:
    """Which sectors of the image are not as the process saw them."""
    lines = [f"not in the image: {name}" for name in sorted(disk.names.keys() - content.keys())]
    for name, found in sorted(content.items()):
        file = disk.names.get(name)
        if file is None:
            lines.append(f"{name}: not there when the power failed")
            continue
        lost = [
            sector
            for sector, versions in sorted(file.versions.items())
            if found[sector * 512 : (sector + 1) * 512].ljust(512, b"\0") != versions[-1].content
        ]
        open_sectors = sorted(file.versions)
        lines.append(
            f"{name}: {len(found)} bytes of {len(file.current)};"
            f" open sectors {open_sectors}, of which not the youngest {lost}"
        )
    return lines
