"""What was shown about a program: as a table, in a sentence, and as what is proven, tested and open."""

from __future__ import annotations

from collections.abc import Sequence

from nram.programs.ir import Evidence, Method, Program, largest_n


def evidence_table(verified: Sequence[Evidence]) -> list[list[str]]:
    """The evidence as rows of words; the first row is the heading."""
    rows = [["task", "method", "n", "M", "inputs", "right under the limits", "halts"]]
    for evidence in verified:
        memory = "every"
        if evidence.extra_memory is not None:
            memory = _range(*(f"least+{more}" if more else "least" for more in evidence.extra_memory))
        inputs = "all values" if evidence.instances is None else f"{evidence.instances:,}"
        limits = "every from T up" if evidence.limits == ("every",) else ", ".join(evidence.limits)
        halts = "always" if evidence.halts else "not proven" if evidence.method == "inductive" else "not always"
        low, high = evidence.complexity
        n = "every" if high is None else _range(str(low), str(high))
        rows.append([evidence.task, evidence.method, n, memory, inputs, limits, halts])
    return rows


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def evidence_in_words(program: Program) -> str:
    """What was shown about a program, in a sentence or two."""
    if not program.verified:
        shown = dict(program.made).get("shown")
        return f"Shown: {shown}." if shown else "Nothing was verified."
    words: dict[Method, str] = {
        "symbolic": "proven for all values up to n = {}",
        "exhaustive": "run on all inputs of small memories up to n = {}",
        "random": "tested on random inputs up to n = {}",
    }
    parts = []
    if program.proven_for_every_length:
        parts.append("proven for every n, every memory size and every input")
        del words["symbolic"]
    for method, text in words.items():
        largest = largest_n(program, method)
        if largest is not None:
            parts.append(text.format(f"{largest:,}"))
    strength = "every step limit from T(n) up" if program.right_under_every_limit else "the step limit T(n)"
    limit = "" if program.limit is None else f", T(n) = {program.limit}"
    return f"Right under {strength}{limit}: {'; '.join(parts)}."


def evidence_in_parts(program: Program) -> dict[str, list[str]]:
    """What is proven, what was only tested, and what nobody has looked at, each as sentences."""
    proven: list[str] = []
    tested: list[str] = []
    for one in program.verified:
        n = _sizes(*one.complexity)
        every = one.limits == ("every",)
        limits = "every step limit from T(n) up" if every else f"step limits of {', '.join(one.limits)}"
        match one.method:
            case "inductive":
                proven.append(f"{n}, every memory size and every input, under {limits}")
            case "symbolic":
                memory = "every memory size" if one.extra_memory is None else "the smallest memory sizes"
                proven.append(f"{n}, all values, {memory}, under {limits}")
            case "exhaustive":
                proven.append(f"{n}: all {one.instances:,} inputs of the smallest memories were run, under {limits}")
            case "random":
                tested.append(f"{one.instances:,} random inputs with {n}, under {limits}")
    return {"proven": proven, "tested": tested, "open": _open(program)}


def _sizes(low: int, high: int | None) -> str:
    if high is None:
        return f"every n from {low} up"
    return f"n = {low:,}" if low == high else f"n from {low:,} to {high:,}"


def _open(program: Program) -> list[str]:
    if not program.verified:
        shown = dict(program.made).get("shown")
        return [f"nothing was verified; it was made from examples: {shown}" if shown else "nothing was verified yet"]
    if program.proven_for_every_length:
        return []
    largest = max((one.complexity[1] or 0 for one in program.verified), default=0)
    words = [f"inputs with n above {largest:,}", "most inputs of the sizes that were only tested"]
    if not program.right_under_every_limit:
        words.append("what it does when it is not stopped at T(n)")
    return words
