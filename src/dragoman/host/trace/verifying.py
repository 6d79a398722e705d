"""Whether a trace is as it was written: every line's hash, the chain through all files, and its two ends.

It says what is wrong, where, and what it may be; a line that a crash cut off is told apart from one that was
changed. Files of any size are read once, line by line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from dragoman.errors import UsageError
from dragoman.host.trace.family import Head, number_of, spill_of, spilled
from dragoman.host.trace.reading import pieces
from dragoman.host.trace.seal import GENESIS, Seal, fits, read_seal
from dragoman.host.trace.standing import opened_file, standing
from dragoman.schema.shapes import is_array, is_object

_MOST: Final = 1000  # findings that are told one by one
_TRIES: Final = 5  # for a value that is moved while it is looked for
_RANGES: Final = 10_000  # gaps that are remembered
_BESIDE: Final = (b'"large":[', b'"definition":{')


Place: TypeAlias = tuple[Path, int]
"""A file, and a line of it counted from 1; 0 for the file as a whole."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it was written, or (`wrong` is False) that is worth knowing.

    `kind` is a word: `changed`, `missing`, `moved`, `repeated`, `replaced`, `foreign`, `beside`, `anchor`; or
    `torn`, `unfinished`, `older`, `head`, `mended`.
    """

    file: Path
    number: int
    kind: str
    text: str
    wrong: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.text}" if self.number else f"{self.file}: {self.text}"


@dataclass(slots=True)
class Report:
    """What was found: counts of files and lines, the last line's number and hash, and the findings."""

    files: int = 0
    lines: int = 0
    seq: int = 0
    hash: str = GENESIS
    findings: list[Finding] = field(default_factory=list[Finding])
    more: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.more and not any(finding.wrong for finding in self.findings)


@dataclass(slots=True)
class _Gap:
    """Numbers that did not come where they belong."""

    first: int
    last: int
    file: Path
    number: int


def verify(path: Path | str, *, key: bytes | None = None, anchor: tuple[int, str] | None = None) -> Report:
    """Check a trace. `anchor` is the number and the hash of a line, as somebody noted them before.

    Raises:
        UsageError: there is no such trace, or a file of it cannot be read.
    """
    with ExitStack() as stack:
        found, head = standing(Path(path), stack)
        check = _Check(Path(path), key=key, anchor=anchor, head=head)
        for file, opened, end in found:
            if opened is not None:
                check.file(file, opened, end=end)
            else:
                with ExitStack() as one:
                    _, late, length = opened_file(file, one)
                    check.file(file, late, end=length)
        check.end(found[-1][0])
    return check.report


class _Check:
    """The state of one reading."""

    def __init__(
        self, path: Path, *, key: bytes | None, anchor: tuple[int, str] | None, head: Head | None
    ) -> None:
        self.report = Report()
        self._path = path
        self._key = key
        self._anchor = anchor
        self._anchored = False
        self._head = head
        self._gaps: list[_Gap] = []
        self._began = False
        self._inode: int | None = None
        self._size: int | None = None  # of the current file
        # A piece without a seal: the next line may say that a crash left it.
        self._piece: tuple[Path, int, bytes, int] | None = None
        self._unended: tuple[Path, int] | None = None
        self._beside: set[str] = set()
        self._bare: set[Path] = set()

    def file(self, file: Path, opened: BinaryIO, *, end: int) -> None:
        """Check the lines of one file, as far as it went."""
        self.report.files += 1
        self._inode = os.fstat(opened.fileno()).st_ino
        try:
            for number, (raw, whole) in enumerate(pieces(opened, end=end), 1):
                self.line(raw, file, number=number, whole=whole)
        except OSError as exc:
            raise UsageError(f"{file} cannot be read: {exc.strerror}", stage="trace") from None
        self._size = end
        self._end_of_file(file)

    # Lines -------------------------------------------------------------------------------------------

    def line(self, raw: bytes, file: Path, *, number: int, whole: bool) -> None:
        """Check one line."""
        at = (file, number)
        self.report.lines += 1
        if not whole:
            self._unended = at
        sealed = read_seal(raw)
        if sealed is None:
            self._foreign()
            self._piece = (file, number, sha256(raw).digest(), len(raw))
            return
        self._settle_piece(raw, at)
        if not fits(raw, key=self._key):
            hint = "; it may have been written with a key" if not self._began and self._key is None else ""
            self._tell(at, "changed", text=f"the line does not fit its hash: it was changed{hint}")
        elif any(mark in raw for mark in _BESIDE):
            self._look_beside(raw, at)
        self._chain(sealed, at)
        if self._anchor is not None and sealed.seq == self._anchor[0]:
            self._anchored = True
            if sealed.hash != self._anchor[1]:
                self._tell(
                    at,
                    "anchor",
                    text=f"line {sealed.seq} of the chain is not the one that was noted",
                )

    def _chain(self, sealed: Seal, at: Place) -> None:
        report, before = self.report, self.report.seq
        if not self._began:
            self._began = True
            self._start(sealed, at)
        elif sealed.seq == before + 1:
            if sealed.prev != report.hash:
                text = (
                    f"this line was written after another line {before} of the chain than the one before it"
                )
                self._tell(at, "replaced", text=text)
        elif sealed.seq > before + 1:
            self._missing(before + 1, sealed.seq - 1, at=at)
        elif self._filled(sealed.seq):
            text = f"line {sealed.seq} of the chain stands behind line {before}: the order was changed"
            self._tell(at, "moved", text=text)
            return
        else:
            self._tell(at, "repeated", text=f"line {sealed.seq} of the chain stands here again")
            return
        report.seq, report.hash = sealed.seq, sealed.hash

    def _start(self, sealed: Seal, at: Place) -> None:
        if (sealed.seq, sealed.prev) == (1, GENESIS):
            return
        if number_of(self._path) is not None:
            text = (
                f"begins with line {sealed.seq} of the chain; only a whole trace can show what is before it"
            )
            self._tell(at, "older", text=text, wrong=False)
        elif self._head is not None and self._is_older(sealed, self._head):
            text = f"lines up to {sealed.seq - 1} of the chain were in files that are no longer kept"
            self._tell(at, "older", text=text, wrong=False)
        else:
            self._missing(1, sealed.seq - 1, at=at)

    def _is_older(self, sealed: Seal, head: Head) -> bool:
        """Whether a trace may begin with this line, after files that are no longer kept, or about to go."""
        return sealed.seq < head.first_seq or (sealed.seq, sealed.prev) == (head.first_seq, head.first_prev)

    def _missing(self, first: int, last: int, *, at: Place) -> None:
        if first <= last and len(self._gaps) < _RANGES:
            self._gaps.append(_Gap(first, last, *at))

    def _filled(self, seq: int) -> bool:
        """Whether a number was missed before; then it no longer is."""
        for place, gap in enumerate(self._gaps):
            if gap.first <= seq <= gap.last:
                rest = [
                    _Gap(gap.first, seq - 1, gap.file, gap.number),
                    _Gap(seq + 1, gap.last, gap.file, gap.number),
                ]
                self._gaps[place : place + 1] = [each for each in rest if each.first <= each.last]
                return True
        return False

    # Pieces ------------------------------------------------------------------------------------------

    def _settle_piece(self, raw: bytes, at: Place) -> None:
        """Judge what stood before a line of the chain: a crash's, if the line says so and it fits."""
        if self._piece is None:
            self._mended(raw, at)
            return
        file, number, digest, length = self._piece
        told = _torn(raw)
        if told == (length, digest.hex()):
            self._piece = None
            self._unended = None
            self._tell((file, number), "torn", text="cut off when its writer was killed", wrong=False)
            return
        self._foreign()

    def _foreign(self) -> None:
        if self._piece is not None:
            file, number, _, _ = self._piece
            self._piece = None
            self._tell((file, number), "foreign", text="no line of this trace: it has no place in the chain")

    def _mended(self, raw: bytes, at: Place) -> None:
        """Tell of what a writer found when it came to the file."""
        if raw.startswith(b'{"kind":"mend"'):
            self._tell(at, "mended", text=f"a writer noted: {_value(raw).get('why')}", wrong=False)

    def _end_of_file(self, file: Path) -> None:
        """Judge the end of one file, with the next to come."""
        if self._unended is not None and self._unended[0] == file and file != self._path:
            self._tell((file, self._unended[1]), "changed", text="the last line has no end: the file was cut")
            self._unended = self._piece = None

    # Ends --------------------------------------------------------------------------------------------

    def end(self, last: Path) -> None:
        """Judge the end of the trace."""
        self._tail(last)
        self._foreign()
        for gap in self._gaps:
            lost = f"line {gap.first}" if gap.first == gap.last else f"lines {gap.first} to {gap.last}"
            verb = "is" if gap.first == gap.last else "are"
            self._tell(
                (gap.file, gap.number),
                "missing",
                text=f"{lost} of the chain, before this one, {verb} missing",
            )
        self.report.findings.sort(
            key=lambda finding: (finding.file != last, str(finding.file), finding.number)
        )
        if self._anchor is not None and not self._anchored:
            text = f"line {self._anchor[0]} of the chain, which was noted, is not there"
            self._tell((last, 0), "anchor", text=text)

    def _tail(self, last: Path) -> None:
        if number_of(self._path) is not None:
            return
        report, head = self.report, self._head
        if head is None:
            text = (
                "without the file of the chain's head it cannot be seen whether lines are missing at the end"
            )
            self._tell((last, 0), "head", text=text, wrong=False)
            return
        self._torn_tail(last, head)
        if head.seq > report.seq:
            lost = head.seq - report.seq
            text = f"{lost} line{'s' * (lost > 1)} of the chain, up to {head.seq}, missing at the end"
            self._tell((last, 0), "missing", text=text)
        elif head.seq == report.seq and head.hash != report.hash:
            self._tell((last, 0), "replaced", text="the last line is not the one that was written")
        elif head.seq < report.seq:
            text = f"a writer was killed after line {report.seq} of the chain and before it noted so"
            self._tell((last, 0), "unfinished", text=text, wrong=False)

    def _torn_tail(self, last: Path, head: Head) -> None:
        """A piece at the very end, behind all that the head knows of, is what a killed writer leaves."""
        if self._unended is None or self._piece is None:
            return
        file, number, _, length = self._piece
        if file == last and self._size is not None and self._size - length >= head.size:
            self._piece = None
            text = "cut off when its writer was killed; the next line that is written will say so"
            self._tell((file, number), "torn", text=text, wrong=False)

    # Beside ------------------------------------------------------------------------------------------

    def _look_beside(self, raw: bytes, at: Place) -> None:
        for digest in _kept(_value(raw)):
            if digest in self._beside:
                continue
            self._beside.add(digest)
            kept = _content(at[0], digest)
            if kept == digest:
                continue
            if kept is not None:
                self._tell(at, "beside", text=f"the long value {digest[:12]}… was changed")
            elif self._head is None and not spill_of(at[0]).exists():
                # A copy of the lines alone: neither head nor values came with it.
                if at[0] not in self._bare:
                    self._bare.add(at[0])
                    text = "the values that were kept beside this file are not here, and not checked"
                    self._tell((at[0], 0), "beside", text=text, wrong=False)
            elif self._is_there(at[0]):
                self._tell(at, "beside", text=f"the long value {digest[:12]}… is not there any more")

    def _is_there(self, file: Path) -> bool:
        """Whether a file still has its name: a writer may have moved it or let it go meanwhile."""
        try:
            return self._inode is None or file.stat().st_ino == self._inode
        except OSError:
            return False

    def _tell(self, at: Place, kind: str, *, text: str, wrong: bool = True) -> None:
        if len(self.report.findings) < _MOST:
            self.report.findings.append(Finding(*at, kind, text, wrong))
        elif wrong:
            self.report.more += 1


def _value(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _torn(raw: bytes) -> tuple[Any, Any] | None:
    if not raw.startswith(b'{"kind":"mend"'):
        return None
    torn = _value(raw).get("torn")
    return (torn.get("bytes"), torn.get("sha256")) if is_object(torn) else None


def _kept(value: dict[str, Any]) -> Iterator[str]:
    """The hashes of what a line keeps beside it."""
    large: Any = value.get("large", ())
    for place in large if is_array(large) else ():
        if is_object(place) and place.get("kept") is True:
            yield str(place.get("sha256"))
    definition: Any = value.get("definition")
    if is_object(definition) and definition.get("kept") is True:
        yield from (
            digest for name, digest in definition.items() if name != "kept" and isinstance(digest, str)
        )


def _content(file: Path, digest: str) -> str | None:
    """The hash of what is kept as a long value of a line, wherever a writer moves it meanwhile."""
    for _ in range(_TRIES):
        found = spilled(file, digest)
        if found is None:
            return None
        whole = sha256()
        try:
            with found.open("rb") as opened:
                while data := opened.read(1 << 20):
                    whole.update(data)
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise UsageError(f"{found} cannot be read: {exc.strerror}", stage="trace") from None
        return whole.hexdigest()
    return None
