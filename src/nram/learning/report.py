"""The report of what was learned, as text and as JSON. It claims only what was tested."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nram.display import counted, span
from nram.learning.asking import question_in_words
from nram.learning.judgement import Judgement
from nram.learning.parts import (
    FEW_OF_A_SIZE,
    Parts,
    by_size,
    cautions,
    memories_in_words,
    sizes_in_words,
)
from nram.learning.review import facts_of
from nram.messages import addressed, command, in_python, pasted
from nram.programs.files import to_json as program_to_json
from nram.programs.growth import DEGREES, UNCLEAR
from nram.programs.scores import Score
from nram.programs.text import table_to_text
from nram.tasks.example_files import ExampleFile

if TYPE_CHECKING:
    from nram.learning.job import Learned, LearningJob

SIZES = "the number of input cells that are not 0", "the number of values in the lists, or else the largest input"
MOST_PRINTED = 24  # rows and operations of a wrong program that is printed and not only in its file
MOST_KNOWN = 2  # the largest constant of programs
LEAST_TO_TRAIN = 60.0  # seconds: a training run has to be compiled first
SMALL = 3  # a search needs examples of sizes up to here to start with


def to_json(learned: Learned) -> dict[str, Any]:
    job, judgement = learned.job, learned.judgement
    search, training = learned.search, learned.training
    return {
        "found": learned.found,
        "examples": {
            "file": str(job.file.path),
            "sha256": job.file.digest,
            "different": len(learned.parts.all),
            "repeated": job.file.repeated,
            "training": len(learned.parts.training),
            "held_out": len(learned.parts.held_out),
            "held_out_longer": learned.parts.longer,
            "counted": job.file.counted,
            "layout": None if job.file.layout is None else str(job.file.layout),
            "options": job.file.reading.words,
        },
        "training": None if judgement is None else judgement.training.to_json(),
        "held_out": None if judgement is None else judgement.held_out.to_json(),
        "halts": None if judgement is None else judgement.halts,
        "shown_up_to_size": None if judgement is None else judgement.shown_up_to,
        "proven": False,
        "out": str(job.folder / "program.json"),
        "seed": job.seed,
        "seconds": round(learned.seconds, 2),
        "interrupted": learned.interrupted,
        "refused_by_held_out": learned.refused,
        "search": search
        and {"candidates": search.candidates, "refused": search.refused, "seconds": round(search.seconds, 2)},
        "trained": training
        and {"runs": training.runs, "scored": training.scored, "seconds": round(training.seconds, 2)},
        "cautions": cautions(learned.parts),
        "leaves_open": list(learned.leaves_open),
        "programs": [
            {"number": number, "file": f"programs/{number}.nram", "exact": one.exact, "chosen": number == 1}
            | one.to_json()
            | {"program": program_to_json(one.program)}
            for number, one in enumerate(learned.kept, 1)
        ],
        "fresh_inputs": learned.probes,
        "question": None if learned.question is None else learned.question.to_json(),
        "answers": len(learned.parts.answers),
        "skipped": list(learned.skipped),
        "notes": list(learned.notes),
        "advice": advice(learned),
        "program": None if learned.program is None else program_to_json(learned.program),
    }


def beginning(file: ExampleFile, parts: Parts) -> str:
    """What the examples are and how they are split, for the first line of progress."""
    repeated = f", {file.repeated} repeated and left out" if file.repeated else ""
    return (
        f"{file.path}: {len(parts.all)} examples{repeated}; to learn from {len(parts.training)} "
        f"({sizes_in_words(parts.training)}), held out {len(parts.held_out)} ({sizes_in_words(parts.held_out)}); "
        f"the size is {SIZES[file.layout is not None]}"
    )


def to_text(learned: Learned) -> str:
    """The whole report. After a failure the advice comes first, and the best program so far last."""
    program, judgement = learned.program, learned.judgement
    if program is None or judgement is None:
        return "\n".join([_ending(learned), *_notes(learned), *_advised(learned)])
    if learned.found:
        lines = [_ending(learned), "", table_to_text(program), *_scores(learned, judgement), _speed(learned)]
        lines += [_shown(learned), *_left_open(learned), *_compared(learned), *_others(learned)]
        lines += [*_asked(learned), *_notes(learned)]
    else:
        lines = [_ending(learned), *_advised(learned), *_left_open(learned), *_notes(learned), *_others(learned), ""]
        short = program.rows + program.operations <= MOST_PRINTED
        lines += [f"The best so far, {program.origin}:", *(["", table_to_text(program)] if short else [])]
        lines += _scores(learned, judgement)
        if (wrong := judgement.smallest) is not None:
            lines += ["The smallest that is wrong:", *wrong.in_words()]
        lines.append(_shown(learned))
    return "\n".join(lines)


# ---- parts of it


def _ending(learned: Learned) -> str:
    what = []
    if learned.search is not None:
        what.append(f"{learned.search.candidates:,} candidates searched")
    if learned.training is not None:
        what.append(f"{counted(learned.training.runs, 'run')} trained")
    work = f"{learned.seconds:.1f} s" + (f", {', '.join(what)}" if what else "")
    program = learned.program
    if program is None:
        return f"NOT FOUND: stopped before there was any program to keep ({work})."
    if learned.found:
        where = " in the cells that count" if _stray(learned) else ""
        verdict = f"FOUND, {program.origin} ({work}): exact{where} on every example, held-out ones included"
        if (size := learned.kept[0].speed.broken_from) is not None:
            verdict += f", but too slow from size {size} on"
        others = "" if learned.question is None else " Other programs fit too, and give other answers elsewhere."
        return f"{verdict}.{others}"
    stopped = "; interrupted" if learned.interrupted else ""
    judgement = learned.judgement
    assert judgement is not None
    right = judgement.training.right + judgement.held_out.right
    total = judgement.training.examples + judgement.held_out.examples
    return f"NOT FOUND ({work}{stopped}). The best program is right on {right} of {total} examples."


def _scores(learned: Learned, judgement: Judgement) -> list[str]:
    """How many examples are right, and how it halts."""
    parts = learned.parts
    larger = "larger, " if parts.longer else ""
    answers = f", {counted(len(parts.answers), 'answer')} included" if parts.answers else ""
    lines = [
        f"Training examples: {_right(judgement.training)}{answers}",
        f"Held-out examples: {_right(judgement.held_out)}; {larger}used only to accept or refuse programs",
    ]
    if many := learned.refused:
        lines.append(
            f"  They helped to choose: {counted(many, 'program')} that fitted the training examples "
            f"{'were' if many > 1 else 'was'} wrong on them. Fresh examples would be a fairer test."
        )
    lines += _what_counts(learned.job.file)
    lines.append(_halting(learned))
    if stray := _stray(learned):
        lines.append(
            f"On {stray} of {len(parts.all)} examples it also changes cells that were not asked about: if they matter, "
            "name them in 'cells'."
        )
    return lines


def _stray(learned: Learned) -> int:
    """On how many examples cells change that do not count. With a layout, cells apart from the results are its own."""
    judgement = learned.judgement
    if judgement is None or learned.job.file.layout is not None:
        return 0
    return judgement.training.stray + judgement.held_out.stray


def _right(score: Score) -> str:
    which = f"({span('size', score.sizes)})"
    if score.exact:
        return f"exact on {'the only one' if score.examples == 1 else f'all {score.examples}'} {which}"
    return f"exact on {score.right} of {score.examples} {which}"


def _what_counts(file: ExampleFile) -> list[str]:
    told = [f"What counts: {file.counted}."]
    if file.layout is None:
        return told
    layout = shlex.join(["--layout", str(file.layout)])
    return [*told, f"Layout: {layout} (edit it to change it)", *(f"  {line}" for line in file.layout.describe())]


def _speed(learned: Learned) -> str:
    speed = learned.kept[0].speed
    if speed.growth is None:
        return "How its steps grow cannot be told from one size."
    letter = "n: the size" if speed.growth.letter == "n" else "M: the cells of the memory"
    fixed = speed.growth.kind in (DEGREES[0], UNCLEAR)  # these name no letter
    words = f"{speed.growth.sentence}{'' if fixed else f' ({letter})'}."
    if speed.broken_from is None:
        return words
    advice = "If it may take longer, say so, as with --steps 20n+200; otherwise search longer for a faster program."
    own = learned.job.steps is None and any(example.own_steps for example in learned.parts.all)
    limit = "the limit that the file's examples follow" if own else f"its limit, {learned.job.steps_in_words}"
    beyond = f"From size {speed.broken_from} on that is more than {limit}."
    return f"{words} {beyond}\n{addressed(advice)}"


def _left_open(learned: Learned) -> list[str]:
    lines = [f"  - {line}" for line in learned.leaves_open]
    return ["What the examples leave open, where a program may do anything:", *lines] if lines else []


def _compared(learned: Learned) -> list[str]:
    """With what the only program that is kept was compared. Several are shown in a table instead."""
    search = learned.search
    if search is None or not search.fitting or sum(one.exact for one in learned.kept) > 1:
        return []
    fitting = len(search.fitting)
    if fitting > 1 and learned.probes:
        return [f"{fitting} programs that fit were found. They give the same answers on {learned.probes} fresh inputs."]
    if fitting > 1:
        return [f"{fitting} programs that fit were found. They could not be compared: no fresh inputs could be made."]
    if learned.job.alternatives == 0:
        return ["No other program that fits was looked for."]
    return [f"No other program that fits was found in {search.further:,} further candidates."]


def _others(learned: Learned) -> list[str]:
    """A table of the programs by fit and size."""
    if len(learned.kept) < 2:
        return []
    rows = [("", "rows + operations", "training", "held out", "steps", "too slow from", "halts")]
    for number, one in enumerate(learned.kept, 1):
        judgement, broken = one.candidate.judgement, one.speed.broken_from
        rows.append(
            (
                f"{'>' if number == 1 else ' '}{number}",
                f"{one.program.rows} + {one.program.operations}",
                f"{judgement.training.right} of {judgement.training.examples}",
                f"{judgement.held_out.right} of {judgement.held_out.examples}",
                str(one.speed),
                "" if broken is None else f"size {broken}",
                "yes" if judgement.halts and not one.endless else "not always",
            )
        )
    used = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in used}
    table = ["  ".join(f"{row[column]:{widths[column]}}" for column in used).rstrip() for row in rows]
    fitting = sum(one.exact for one in learned.kept)
    if 0 < fitting < len(learned.kept):
        table.insert(fitting + 1, "smaller programs that nearly fit:")
    which = f"{fitting} programs fit and differ on fresh inputs" if fitting > 1 else "Programs by fit and size"
    chosen = "the first is chosen" if learned.found else "the first is the best"
    return [f"{which} (in {learned.job.folder / 'programs'}; {chosen}):", *table]


def _asked(learned: Learned) -> list[str]:
    """The open question, and how to answer it."""
    question, job = learned.question, learned.job
    if question is None:
        return []
    return [*question_in_words(question), f"Answer: {_again(job, 'ask')}"]


def _again(job: LearningJob, *flags: str) -> str:
    """The command that goes on with this job; in Python, the call."""
    if in_python():
        given = {"out": job.folder, **job.options, "resume": True}
        return command("learn", job.file.path, **given) + (", with a function for ask" if flags else "")
    words = [*job.words, "--out", pasted(job.folder), "--resume", *(f"--{flag}" for flag in flags)]
    return shlex.join(["nram", *words])


def _halting(learned: Learned) -> str:
    judgement = learned.judgement
    assert judgement is not None
    if judgement.halts:
        endless = learned.kept[0].endless
        unless = f", but not on {endless} of {learned.probes} fresh inputs" if endless else ""
        return f"It halts by itself on every example{unless}."
    halted = judgement.training.halted + judgement.held_out.halted
    total = judgement.training.examples + judgement.held_out.examples
    at_limit = any(one.only_at_limit for score in (judgement.training, judgement.held_out) for one in score.wrong)
    spoiled = " Some examples are right only if it is stopped at their step limit, which counts as wrong."
    return f"It halts by itself on {halted} of {total} examples.{spoiled if at_limit else ''}"


def _shown(learned: Learned) -> str:
    judgement, parts = learned.judgement, learned.parts
    assert judgement is not None
    up_to = judgement.shown_up_to
    if up_to is None:
        return "It is wrong already on an example of the smallest size: nothing is shown of it."
    trained = parts.training[-1].size
    beyond = ", larger than anything it was learned from" if judgement.exact and up_to > trained else ""
    memories = f"memories of {memories_in_words(parts.all)}"
    return (
        f"Shown: every example up to size {up_to}{beyond}, in {memories}.\nNothing beyond these examples is proven. "
        "Rows that no training input leads to may be missing, so on other kinds of input it may do anything."
    )


def _notes(learned: Learned) -> list[str]:
    told = [*cautions(learned.parts), *learned.notes]
    earlier = learned.job.folder / "program.before.nram"
    if not learned.found and earlier.is_file():
        told.append(
            f"{earlier} is the program that was exact until an answer. If the answer was wrong, delete its line in "
            f"answers.jsonl, then: {_again(learned.job)}"
        )
    return [f"Note: {text}." for text in told]


# ---- what to do


def _advised(learned: Learned) -> list[str]:
    told = advice(learned)
    return ["What may help:", *(f"  - {line}" for line in told)] if told else []


def advice(learned: Learned) -> list[str]:
    """What to change, after a failure."""
    if learned.found:
        return []
    parts, job, judgement = learned.parts, learned.job, learned.judgement
    groups = by_size(parts.training)
    told = []
    thin = [size for size, group in groups.items() if len(group) < FEW_OF_A_SIZE]
    if judgement is not None and judgement.training.exact:
        told.append(
            "it fits what it was learned from and not the held-out examples, so it knows a trick: give more examples "
            f"of {sizes_in_words(parts.training)}, at least {2 * FEW_OF_A_SIZE} of each"
        )
    elif thin:
        sizes = ", ".join(map(str, thin[:8])) + (" and more" if len(thin) > 8 else "")
        told.append(f"few examples of size {sizes}: give at least {FEW_OF_A_SIZE} of each")
    if min(groups) > SMALL:
        told.append(
            f"the smallest size is {min(groups)}: add examples of sizes 1 to {SMALL}, from which a search climbs"
        )
    if judgement is not None and not judgement.halts and job.steps is None:
        told.append("it does not always halt in time: if the problem needs more steps, say so, as with --steps 6n+40")
    layout = job.file.layout
    if not any(value > MOST_KNOWN for value in facts_of(parts.all, layout).constant.values()):
        place = "cell" if layout is None else "column"
        told.append(
            f"if the rule needs a fixed number such as 5, give it as a {place} (programs know only 0, 1 and "
            f"{MOST_KNOWN})"
        )
    least = LEAST_TO_TRAIN if learned.training is not None else 0.0
    told.append(f"more time: {_again(replace(job, budget=max(2 * job.budget, least)))}")
    return [addressed(line) for line in told]
