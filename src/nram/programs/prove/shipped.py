"""The certificates that ship with the zoo, one for each of its programs that is proven for every length."""

from __future__ import annotations

import os
from pathlib import Path

from nram.errors import NramError, UsageError
from nram.limits import StepLimit
from nram.programs.files import read_program
from nram.programs.ir import Program
from nram.programs.library import ZooEntry, find_entry, zoo_certificate, zoo_entries
from nram.programs.prove.certificate import Certificate, read_certificate
from nram.tasks.base import Task


def load_certificate(name_or_path: str | os.PathLike[str]) -> tuple[Certificate, Program | None]:
    """The certificate of a program of the zoo (NAME or NAME@ORIGIN), with that program, or the certificate in a file.

    As everywhere, a name of the zoo means the zoo; write ./copy for a file of that name.
    """
    entry = find_entry(name_or_path) if isinstance(name_or_path, str) else None
    if entry is not None:
        return _read(entry), entry.program
    path = Path(name_or_path)
    if not path.exists():
        raise UsageError(f"there is no certificate '{path}': no such file, and no program of the zoo has this name")
    try:
        return read_certificate(path), None
    except NramError:
        if not _is_program(path):
            raise
        raise UsageError(f"{path} is a program, not a certificate: 'nram prove' makes one of it (--out)") from None


def _is_program(path: Path) -> bool:
    try:
        return path.is_file() and bool(read_program(path))
    except NramError:
        return False


def same_table(one: Program, other: Program) -> bool:
    """Whether both do the same, row by row. The fingerprint tells the modules of users apart; alone it is too short to
    keep out a table that somebody made to have the same one."""
    same = len(one.registers) == len(other.registers) and one.states == other.states
    return same and one.fingerprint == other.fingerprint


def shipped_certificate(program: Program, task: Task, limit: StepLimit) -> Certificate | None:
    """The certificate that the zoo has of a program with this table, on this task and with this limit."""
    for entry in zoo_entries():
        if entry.has_certificate and entry.name == task.name and same_table(entry.program, program):
            certificate = _read(entry)
            return certificate if certificate.limit == limit else None
    return None


def _read(entry: ZooEntry) -> Certificate:
    if not entry.has_certificate:
        others = [one.title for one in zoo_entries() if one.name == entry.name and one.has_certificate]
        hint = f"; {' and '.join(others)} has one" if others else ""
        raise UsageError(f"{entry.title} has no certificate, since it is not proven for every length{hint}")
    with zoo_certificate(entry) as path:
        return read_certificate(path)
