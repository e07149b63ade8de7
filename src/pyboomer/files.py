"""A file that is written is there whole, or what was there before is: whatever fails, and even if the power does.

All that the package writes goes through here: models, exports, pages, tables and reports.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

STREAMS = re.compile("/dev/std(in|out|err)|/dev/fd/[0-9]+|/proc/[^/]+/fd/[0-9]+")  # names of what is open already


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file: beside the old one first, then in its place.

    A file that is replaced keeps its permissions, and a link goes on to lead to it. Devices and pipes are written to
    as they are, and so is a file that is a mount of its own, as containers have them: no other can take its place.
    """
    check_output(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        _write(path, data)
    except OSError as error:
        if error.errno is not None:  # a full disk has no name, and that of the part says nothing
            error.filename, error.filename2 = str(path), None
        raise


def _write(path: str | Path, data: bytes) -> None:
    old = _look_up(path)
    if old is not None and _takes_a_stream(path, old):
        with open(os.open(path, os.O_WRONLY | (os.O_APPEND if stat.S_ISREG(old.st_mode) else 0)), "wb") as stream:
            stream.write(data)
        return
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            if old is not None:
                _copy_owner(old, part)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _replace(target, part, data)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _replace(target: Path, part: Path, data: bytes) -> None:
    try:
        os.replace(part, target)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        target.write_bytes(data)  # if the process is killed now, all of it is in the part
        part.unlink()


def check_output(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse a file that cannot be written, or that is read as well, before hours are spent on what belongs in it."""
    old, folder = _look_up(path), Path(os.path.realpath(path)).parent
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(f"cannot write {path}: it is protected against writing")
    for given in inputs:
        read = _look_up(given)
        if old is not None and stat.S_ISREG(old.st_mode) and read is not None and os.path.samestat(old, read):
            raise ValueError(f"cannot write {path}: it is read by the same command, and would be lost")
    if old is not None and _takes_a_stream(path, old):
        return
    if not folder.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {folder if old else Path(path).parent}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {path}: no permission to write in {folder}")


def _look_up(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(Path(path))  # of no name, this is the folder at hand
    except (FileNotFoundError, NotADirectoryError):
        return None


def _takes_a_stream(path: str | Path, found: os.stat_result) -> bool:
    return not stat.S_ISREG(found.st_mode) or STREAMS.fullmatch(os.path.abspath(path)) is not None


def _copy_owner(old: os.stat_result, part: Path) -> None:
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root may give files away; then the new one is ours
            os.chown(part, old.st_uid, old.st_gid)
    os.chmod(part, stat.S_IMODE(old.st_mode))
