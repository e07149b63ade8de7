"""Files: they are written whole or not at all, into what is there, and never over what is read."""

import errno
import io
import os
import re
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pyboomer import files, load_model
from pyboomer.files import check_output, write_file

MODEL = load_model(Path(__file__).parent / "export" / "model-v1.json")
WRITERS: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda path: write_file(path, b"after"),
    "save": MODEL.save,
    "to_python": MODEL.to_python,
    "to_html": MODEL.to_html,
}


class Failing:
    """Counts the calls by which a file is written, and makes one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fatal: int, error: BaseException) -> None:
        self.calls: list[str] = []
        self.fatal = fatal
        self.error = error
        for name in ("chown", "chmod", "fsync", "replace"):
            monkeypatch.setattr(files.os, name, self.watch(name, getattr(os, name)))
        monkeypatch.setattr(files, "open", self.watch("open", self.open), raising=False)

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) - 1 == self.fatal:
                raise self.error
            return function(*arguments)

        return call

    def open(self, *arguments: Any) -> Any:
        test, raw = self, io.open(*arguments, buffering=0)  # noqa: SIM115, UP020 (open is replaced, and closes below)

        class File:
            fileno = staticmethod(raw.fileno)

            def __enter__(self) -> "File":
                return self

            def __exit__(self, *_: object) -> None:
                raw.close()
                test.watch("close", lambda: None)()

            def write(self, data: bytes) -> None:
                raw.write(data[: len(data) // 2])
                test.watch("write", lambda: raw.write(data[len(data) // 2 :]))()

            flush = staticmethod(test.watch("flush", raw.flush))

        return File()


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_whichever_call_fails_the_old_file_stays_whole_and_nothing_else_is_left(
    tmp_path: Path, writer: str, error: BaseException
) -> None:
    path = tmp_path / "file"
    failed: list[str] = []
    while True:
        path.write_bytes(b"before")
        with pytest.MonkeyPatch.context() as monkeypatch, suppress(type(error)):
            failing = Failing(monkeypatch, len(failed), error)
            WRITERS[writer](path)
        assert [file.name for file in tmp_path.iterdir()] == ["file"]
        is_in_place = "replace" in failing.calls[: len(failed)]
        assert (path.read_bytes() == b"before") != is_in_place
        if len(failing.calls) == len(failed):
            break
        failed.append(failing.calls[len(failed)])
    assert failed == ["open", "chown", "chmod", "write", "flush", "fsync", "close", "replace"]


WRITES = re.compile(r"""\.write_text\(|\.write_bytes\(|os\.replace\(|open\([^)]*["'][rb+]*[wxa]|savefig\((?!content)""")


def test_nothing_else_in_the_package_writes_files() -> None:
    """But the store of compiled code: what is lost or damaged there is made anew."""
    source = Path(files.__file__).parent

    def writes(path: Path) -> bool:
        lines = path.read_text().splitlines()
        return any(WRITES.search(line) for line in lines if not line.lstrip().startswith(">>> "))  # examples may

    found = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if writes(path)}
    assert found == {"files.py", "compiling/store.py"}


def test_a_file_keeps_its_permissions_and_a_new_one_has_the_usual_ones(tmp_path: Path) -> None:
    private, new = tmp_path / "private", tmp_path / "new"
    private.touch(mode=0o600)
    write_file(private, "secret")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    write_file(new, "text")
    (tmp_path / "usual").touch()
    assert new.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "old").write_text("before")
    for name in ("old", "new"):
        (tmp_path / name).symlink_to(Path("far") / name)
        write_file(tmp_path / name, "after")
        assert (tmp_path / name).is_symlink()
        assert (folder / name).read_text() == "after"
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["far", "new", "new", "old", "old"]


def test_a_pipe_and_a_device_are_written_to_as_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "through the pipe")
    reader.join()
    assert received == ["through the pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_file("/dev/null", "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_what_is_open_already_is_added_to(tmp_path: Path) -> None:
    with open(tmp_path / "log", "a") as log:
        log.write("first, ")
        log.flush()
        write_file(f"/dev/fd/{log.fileno()}", "second")
    assert (tmp_path / "log").read_text() == "first, second"


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=f"cannot write {tmp_path}: it is a folder"):
        write_file(tmp_path, "")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*gone"):
        write_file(tmp_path / "gone" / "file", "")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        write_file(tmp_path / "loop", "")
    assert [file.name for file in tmp_path.iterdir()] == ["loop"]
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        write_file("", "")


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(monkeypatch, 1, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match=r"No space left on device: '.*file'"):
        write_file(tmp_path / "file", "after")


def test_a_file_that_is_a_mount_is_written_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")  # as the system answers if it is one

    path = tmp_path / "file"
    path.write_text("what was there before")
    monkeypatch.setattr(files.os, "replace", replace)
    write_file(path, "after")
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_is_protected_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o400)
    with pytest.raises(PermissionError, match="it is protected against writing"):
        write_file(path, "")
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="no permission to write in"):
            write_file(path, "")
    finally:
        tmp_path.chmod(0o700)


def test_what_is_read_is_not_written(tmp_path: Path) -> None:
    data, link, twin = tmp_path / "data.csv", tmp_path / "link.csv", tmp_path / "twin.csv"
    data.write_text("a,b")
    link.symlink_to(data)
    os.link(data, twin)
    descriptor = os.open(data, os.O_WRONLY)
    through_proc = [Path(f"/proc/self/root{data}")] if Path("/proc/self/root").exists() else []
    for output in (data, link, twin, Path(f"/dev/fd/{descriptor}"), *through_proc):
        with pytest.raises(ValueError, match=f"cannot write {output}: it is read by the same command"):
            check_output(output, [tmp_path / "absent", data])
    os.close(descriptor)
    check_output(tmp_path / "new.csv", [data])
    for path in through_proc:  # another name of a file, not one that is open
        write_file(path, "c,d")
        assert data.read_text() == "c,d"
