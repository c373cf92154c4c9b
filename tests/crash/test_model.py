"""The model of the disk, and the judgement, by small examples."""

from tests.crash.disk import Disk, Mercy
from tests.crash.files import File
from tests.crash.ledger import Entry, Found, Promises, payload_of
from tests.crash.log import Event, Kind
from tests.crash.shapes import systematic

SECTOR = 512
OLD, NEW, NEWER = (bytes([n]) * SECTOR for n in (1, 2, 3))


def event(kind: Kind, content: bytes = b"", first: int = 0, place: int = 0, file: int = 7) -> Event:
    return Event(kind, place, 1, 1, file, first, 0, content)


def contents(disk: Disk, name: str = "a") -> set[bytes | None]:
    return {image.content.get(name) for image in systematic(disk)}


def test_a_sync_settles_what_was_written_before_it_began() -> None:
    file = File(OLD)
    file.write(1, 0, NEW)
    file.write(3, 0, NEWER)
    file.sync(begun=2)
    assert file.settled == NEW
    assert [version.content for version in file.versions[0]] == [NEWER]
    file.sync(begun=4)
    assert file.settled == NEWER
    assert not file.is_open


def test_a_failed_sync_leaves_open_what_was_written_before_it() -> None:
    file = File(OLD + OLD)
    file.write(1, 0, NEW + NEW)
    file.fail_sync(begun=2)
    file.write(3, 0, NEWER)
    file.sync(begun=4)
    assert file.settled == NEWER + OLD
    assert list(file.versions) == [1]


def test_a_write_that_does_not_fill_a_sector_keeps_the_rest_of_it() -> None:
    file = File(OLD)
    file.write(1, 10, b"abc")
    file.write(2, 600, b"x")
    assert file.versions[0][0].content == OLD[:10] + b"abc" + OLD[13:]
    assert file.versions[1][0].content == bytes(88) + b"x" + bytes(423)
    assert file.sizes[-1].size_bytes == 601
    assert file.image({}, 601) == OLD + bytes(89)


def test_what_was_cut_off_reads_zeros_when_the_file_grows_again() -> None:
    file = File(OLD + OLD)
    file.truncate(1, 100)
    file.write(2, SECTOR + 1, b"x")
    file.sync(begun=3)
    assert file.settled == OLD[:100] + bytes(SECTOR - 99) + b"x"


def test_what_was_cut_off_does_not_come_back_alone() -> None:
    file = File(OLD + OLD)
    file.write(1, 0, NEW)
    file.truncate(2, 0)
    file.write(3, SECTOR, NEWER)
    noticed = {sector: [v.content for v in found] for sector, found in file.choices().items()}
    assert noticed == {0: [bytes(SECTOR)], 1: [bytes(SECTOR), NEWER]}
    before = {sector: [v.content for v in found] for sector, found in file.choices(1).items()}
    assert before == {0: [None, NEW], 1: [None]}


def test_the_folder_notices_files_in_their_order() -> None:
    disk = Disk({})
    disk.apply(event(Kind.OPEN, b".", file=1))
    disk.apply(event(Kind.OPEN, b"a", file=7))
    disk.apply(event(Kind.OPEN, b"b", file=8))
    assert [sorted(disk.listing(n)) for n in range(3)] == [[], ["a"], ["a", "b"]]
    disk.apply(event(Kind.SYNC_BEGINS, place=50, file=1))
    disk.apply(event(Kind.UNLINK, b"a"))
    disk.apply(event(Kind.SYNC_ENDS, first=50, file=1))
    assert [sorted(disk.listing(n)) for n in range(2)] == [["a", "b"], ["b"]]


def test_a_file_under_an_old_name_is_another_file() -> None:
    disk = Disk({"a": OLD})
    disk.apply(event(Kind.OPEN, b"a", file=7, first=SECTOR))
    disk.apply(event(Kind.UNLINK, b"a"))
    disk.apply(event(Kind.OPEN, b"a", file=8))
    disk.apply(event(Kind.WRITE, NEW, file=8))
    assert contents(disk) == {OLD, None, b"", bytes(SECTOR), NEW}


FINAL: list[Entry] = [
    (1, 1, 10_001, 0, payload_of(10_001, 0)),
    (2, 1, 10_002, 0, payload_of(10_002, 0)),
    (3, 1, 10_002, 1, payload_of(10_002, 1)),
]


def promises(*said: bytes, is_durable: bool = True) -> Promises:
    made = Promises(FINAL, is_durable)
    for what in said:
        made.apply(event(Kind.MARK, what))
    return made


def begins(token: int, parts: int = 1) -> bytes:
    return b'{"what": "begins", "token": %d, "parts": %d, "is_doomed": false}' % (token, parts)


def test_what_was_acknowledged_must_be_there() -> None:
    acknowledged = b'{"what": "acknowledged", "token": 10001}'
    nothing = Found((), True, 0, ())
    assert promises(acknowledged).judge(nothing) == ["lost: entries 1 to 1"]
    assert not promises(acknowledged, is_durable=False).judge(nothing)
    assert not promises(acknowledged).judge(Found((), True, 1, ()))
    missing = promises(b'{"what": "acknowledged", "token": 77}')
    assert missing.at_the_end() == ["lost: 77 at the end"]


def test_a_transaction_is_there_as_a_whole() -> None:
    assert promises().judge(Found((), True, 2, ())) == ["in part: the transaction of entry 2"]
    half = Found((), True, 1, ((5, 0),))
    assert promises(begins(5, 2)).judge(half) == ["in part: 5 has parts [0]"]
    assert not promises(begins(5)).judge(half)


def test_what_has_failed_is_not_there() -> None:
    failed = promises(begins(5), b'{"what": "failed", "token": 5}')
    assert failed.judge(Found((), True, 1, ((5, 0),))) == ["failed and there: 5"]
    failed = promises(begins(10_001), b'{"what": "failed", "token": 10001}')
    assert failed.at_the_end() == ["failed and there: 10001"]


def test_what_nobody_has_begun_is_not_there() -> None:
    assert promises().judge(Found((), True, 1, ((5, 0),))) == ["out of order: 5"]


def test_a_file_cut_to_nothing_stays_so_only_by_mercy() -> None:
    for mercy, may_be in ((Mercy.NONE, {OLD, b""}), (Mercy.EMPTY, {b""})):
        disk = Disk({"a": OLD}, mercy)
        disk.apply(event(Kind.OPEN, b"a", first=SECTOR))
        disk.apply(event(Kind.TRUNCATE))
        disk.apply(event(Kind.SYNC_BEGINS, place=1))
        failed = event(Kind.SYNC_ENDS, first=1, place=2)._replace(second=-1)
        disk.apply(failed)
        assert contents(disk) == may_be
