"""What is wrong with a file of examples. The same problem in many places is told once, with a count."""

from __future__ import annotations

from dataclasses import dataclass, field

from nram.records import listed

MOST_PLACES = 4  # that are named besides the first


@dataclass
class Problems:
    """The problems of one file, in the order in which they were found."""

    unit: str = "line"
    """What is counted: a line of the file, or an entry of a JSON list."""
    count: int = 0
    _kinds: dict[str, tuple[str, list[int]]] = field(default_factory=dict)

    def add(self, kind: str, place: int | None, text: str) -> None:
        """Note a problem. Of problems of one kind the first is told, with the places of the others."""
        self.count += 1
        _, places = self._kinds.setdefault(kind, (text, []))
        if place is not None:
            places.append(place)

    def __str__(self) -> str:
        return listed([self._told(text, list(dict.fromkeys(places))) for text, places in self._kinds.values()])

    def _told(self, text: str, places: list[int]) -> str:
        if not places:
            return text
        first, others = places[0], places[1 : MOST_PLACES + 1]
        if not others:
            return f"{self.unit} {first}: {text}"
        more = ", ".join(map(str, others)) + (", ..." if len(places) > MOST_PLACES + 1 else "")
        return f"{self.unit} {first}, and {len(places) - 1:,} more ({more}): {text}"
