"""Files: no write is lost or torn, locks hold, and readers are bounded and strict."""

import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nram.errors import NramError, UsageError
from nram.files import (
    check_destination,
    is_leftover,
    locked,
    parse_json,
    parse_toml,
    read_bounded,
    read_json,
    read_text,
    read_toml,
    remove_leftovers,
    require_plain,
    write_atomically,
)


def names_in(path) -> set[str]:
    return {file.name for file in path.iterdir()}


# ---- writing


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    """A real failure: the operating system refuses files as large as the new one."""
    file = tmp_path / "a.bin"
    write_atomically(file, b"old")
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom nram.files import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\nwrite_atomically(Path(sys.argv[1]), bytes(5000))\n"
    )
    failed = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True)
    assert f"NramError: cannot write {file}: File too large (the old file is intact)" in failed.stderr
    assert file.read_bytes() == b"old"
    assert names_in(tmp_path) == {"a.bin"}


def test_a_write_into_nowhere_is_one_clear_error(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "a", tmp_path / "file" / "a"):
        with pytest.raises(NramError, match=f"cannot write {path}: "):
            write_atomically(path, b"x")


WRITER = """
import sys
from pathlib import Path
from nram.files import write_atomically
path, letter = Path(sys.argv[1]), sys.argv[2].encode()
for count in range(150):
    write_atomically(path, letter * (5000 + 100 * count))
"""


def test_two_writers_never_fail_and_a_reader_never_sees_half_a_file(tmp_path):
    path = tmp_path / "a"
    write_atomically(path, b"x" * 5000)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, letter], stderr=subprocess.PIPE) for letter in "yz"
    ]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        content = path.read_bytes()
        assert len(content) >= 5000
        assert len(set(content)) == 1
        reads += 1
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [(b"", 0)] * 2
    assert reads > 10
    assert names_in(tmp_path) == {"a"}


def test_threads_of_one_process_may_write_the_same_file(tmp_path):
    failures = []

    def write(letter):
        try:
            for _ in range(30):
                write_atomically(tmp_path / "a", letter * 1000)
        except NramError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"y", b"z")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert names_in(tmp_path) == {"a"}


@pytest.mark.parametrize("name", ["n" * 255, "\u00e4" * 127])
def test_names_of_255_bytes_work(tmp_path, name):
    check_destination(tmp_path / name)
    write_atomically(tmp_path / name, b"x")
    assert (tmp_path / name).read_bytes() == b"x"
    with pytest.raises(NramError, match="cannot write .*: File name too long"):
        write_atomically(tmp_path / f"{name}nn", b"x")
    with pytest.raises(UsageError, match="File name too long; choose another 'out'"):
        check_destination(tmp_path / f"{name}nn")


def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "a"
    path.touch(mode=0o600)
    write_atomically(path, b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_of_ours_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_another_user_is_not_followed(tmp_path):
    """Neither its content nor its permissions: a link to a program of root would make the new file one of root's."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o4777)
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "pipe"):
        (tmp_path / "link").symlink_to(name)
        os.lchown(tmp_path / "link", 12345, 12345)
        check_destination(tmp_path / "link")
        write_atomically(tmp_path / "link", b"new")
        assert stat.S_IFMT((tmp_path / "link").lstat().st_mode) == stat.S_IFREG
        assert stat.S_IMODE((tmp_path / "link").stat().st_mode) in (0o644, 0o664, 0o600)
        assert (tmp_path / "link").read_bytes() == b"new"
        (tmp_path / "link").unlink()
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_pipe_is_written_and_not_replaced(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    check_destination(pipe)
    write_atomically(pipe, b"x")
    reader.join()
    assert received == [b"x"]
    assert pipe.is_fifo()


def test_standard_output_that_is_a_pipe_can_be_a_destination():
    program = (
        "from pathlib import Path\nfrom nram.files import check_destination, write_atomically\n"
        "check_destination(Path('/dev/stdout'))\nwrite_atomically(Path('/dev/stdout'), b'x')\n"
    )
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout == b"x"


def test_a_device_is_not_replaced():
    check_destination(Path("/dev/null"))
    write_atomically(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(NramError, match="cannot write /dev/full: No space left on device"):
        write_atomically(Path("/dev/full"), b"x")


def test_a_destination_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    wrong = {
        tmp_path / "missing" / "a": f"there is no folder {tmp_path}/missing; make it, or choose another 'out'",
        tmp_path / "file" / "a": f"cannot write {tmp_path}/file/a: Not a directory; choose another 'out'",
        tmp_path: f"'out' {tmp_path} is a folder: name a file in it",
    }
    for path, message in wrong.items():
        with pytest.raises(UsageError, match=message):
            check_destination(path)
    with pytest.raises(UsageError, match="not a valid file name"):
        check_destination(tmp_path / "a\0b")
    check_destination(tmp_path / "file")
    check_destination(tmp_path / "new")
    assert names_in(tmp_path) == {"file"}


def test_a_full_disk_is_noticed_before_the_work(tmp_path):
    """A real failure: the operating system refuses files of more than a few bytes."""
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom nram.files import check_destination\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\ncheck_destination(Path(sys.argv[1]))\n"
    )
    failed = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], capture_output=True, text=True)
    assert f"UsageError: cannot write {tmp_path / 'a'}: File too large; choose another 'out'" in failed.stderr
    assert names_in(tmp_path) == set()


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path):
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom nram.files import write_atomically\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\nwrite_atomically(Path(sys.argv[1]), b'x')\n"
    )
    for name in ("a", "b"):
        subprocess.run([sys.executable, "-c", program, tmp_path / name])
    (tmp_path / "mine.part").touch()
    left = [path for path in tmp_path.iterdir() if is_leftover(path)]
    assert len(left) == 2
    remove_leftovers(tmp_path / "a")
    assert sum(is_leftover(path) for path in tmp_path.iterdir()) == 1
    remove_leftovers(tmp_path)
    assert names_in(tmp_path) == {"mine.part"}


# ---- locks

HOLDER = """
import sys, time
from pathlib import Path
from nram.files import locked
with locked(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_keeps_others_out_until_its_process_dies(tmp_path):
    path = tmp_path / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match="^somebody is at work$"), locked(path, "somebody is at work"):
        pass
    holder.kill()
    holder.communicate()
    assert path.exists()
    with locked(path, "somebody is at work"):
        pass
    assert names_in(tmp_path) == set()


def test_what_cannot_be_a_lock_file_comes_with_a_cure(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("folder", "link"):
        with pytest.raises(NramError, match=f"cannot write .*{name}: .*; remove it$"), locked(tmp_path / name, ""):
            pass


ADDER = """
import sys, time
from pathlib import Path
from nram.errors import UsageError
from nram.files import locked
folder, added = Path(sys.argv[1]), 0
while added < 100:
    try:
        with locked(folder / ".lock", "busy"):
            count = int((folder / "count").read_text())
            time.sleep(0)
            (folder / "count").write_text(str(count + 1))
            added += 1
    except UsageError:
        pass
"""


def test_processes_that_take_turns_never_hold_the_lock_together(tmp_path):
    """Each holder removes the lock file, so others lock a file that is gone: they must notice it."""
    (tmp_path / "count").write_text("0")
    adders = [subprocess.Popen([sys.executable, "-c", ADDER, tmp_path]) for _ in range(3)]
    assert [adder.wait() for adder in adders] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "300"


# ---- reading


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_end_is_refused(path):
    with pytest.raises(UsageError, match=f"{path} is too large for a memory: the most is 1 MiB"):
        read_bounded(Path(path), 1 << 20, "memory")


def test_a_large_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "a"
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room, and reading it would take minutes
    with pytest.raises(UsageError, match="is too large for a file: the most is 2 KiB"):
        read_bounded(path, 2048)


def test_a_file_of_the_most_bytes_is_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 2048)
    assert read_bounded(path, 2048) == b"x" * 2048
    with pytest.raises(UsageError, match="too large"):
        read_bounded(path, 2047)


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with open(pipe, "wb", buffering=0) as file:
            file.write(b"one ")
            time.sleep(0.05)
            file.write(b"two")

    writer = threading.Thread(target=write)
    writer.start()
    assert read_bounded(pipe, 100) == b"one two"
    writer.join()


def test_what_cannot_be_read_is_one_clear_error(tmp_path):
    with pytest.raises(NramError, match="missing cannot be read: No such file or directory"):
        read_bounded(tmp_path / "missing", 10)
    with pytest.raises(NramError, match="cannot be read: Is a directory"):
        read_bounded(tmp_path, 10)
    with pytest.raises(UsageError, match="not a valid file name"):
        read_bounded(tmp_path / "a\0b", 10)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="bytes is not a program: it is not text in UTF-8"):
        read_text(tmp_path / "bytes", 10, "program")


def test_a_pipe_in_a_folder_is_refused_instead_of_waited_for(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "lost").symlink_to("nowhere")
    require_plain(tmp_path)
    os.mkfifo(tmp_path / "deep" / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path in (tmp_path / "deep", tmp_path / "deep" / "pipe", tmp_path / "zero"):
        with pytest.raises(UsageError, match="is not a regular file: remove it"):
            require_plain(path)


WRONG_JSON = {
    "": "it is not JSON: Expecting value",
    "{": "it is not JSON",
    '{"a": 1, "b": {"c": 1, "c": 2}}': "an object has 'c' twice",
    "NaN": "it is not JSON: NaN is not a number",
    "[-Infinity]": "it is not JSON: -Infinity is not a number",
    "1e999": "the number '1e999' is too large",
    "9" * 5000: "a number has too many digits",
    "[" * 66 + "]" * 66: "nested more than 64 deep",
    '{"a":' * 66 + "1" + "}" * 66: "nested more than 64 deep",
    "[" * 100_000: "nested more than 64 deep",
    '["\\ud800"]': "half a character",
    '{"\\udfff": 1}': "half a character",
}


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, true, "\\ud83d\\ude00"]}', "[" * 65 + "]" * 65, '"\\\\ud800"'])
def test_other_json_is_read_as_python_reads_it(text):
    assert parse_json(text) == json.loads(text)


WRONG_TOML = {
    "a": "it is not TOML",
    "a = 1\na = 2": "it is not TOML",
    "a = " + "9" * 5000: "a number has too many digits",
    "a = " + "[" * 66 + "]" * 66: "nested more than 64 deep",
    "a = " + "[" * 100_000: "nested more than 64 deep",
    ".".join("a" * 70) + " = 1": "nested more than 64 deep",
    ".".join("a" * 500_000) + " = 1": "nested more than 64 deep",  # Python's reader takes quadratic time
    "a = {" + " . ".join(["'b'"] * 100_000) + " = 1}": "nested more than 64 deep",
}


WRONG = [(parse_json, read_json, *row) for row in WRONG_JSON.items()]
WRONG += [(parse_toml, read_toml, *row) for row in WRONG_TOML.items()]


@pytest.mark.parametrize(("parse", "read", "text", "problem"), WRONG, ids=range(len(WRONG)))
def test_wrong_json_and_toml_are_errors_that_say_why(tmp_path, parse, read, text, problem):
    with pytest.raises(ValueError, match=problem):
        parse(text)
    path = tmp_path / "a"
    path.write_text(text)
    with pytest.raises(NramError, match=f"{path} cannot be read: .*{problem}"):
        read(path, 1 << 20)
