"""What to try when a run did not succeed, as commands."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nram.extensions import is_file_name, known_task
from nram.messages import pasted, shell_command
from nram.training.config import HyperConfig, TrainConfig
from nram.training.ranges import Range
from nram.training.run_folder import RunFolder


@dataclass(frozen=True)
class Cure:
    """Something to try, with the command that tries it."""

    text: str
    command: str | None = None


def cure_lines(cures: list[Cure]) -> list[str]:
    lines = []
    for number, cure in enumerate(cures, 1):
        lines.append(f"  {number}. {cure.text}")
        lines += [f"     {cure.command}"] if cure.command else []
    return lines


# ---- cures


class Retry:
    """Commands that train the same task again with something changed, in another folder."""

    def __init__(self, run: RunFolder, config: TrainConfig, group: int = 0):
        self.path, self.whole, self.arguments = run.path, config, run.record.arguments
        self.config = config.group_configs[group]
        self.group = f"groups.{group}." if config.groups else ""  # before the name of a setting
        self.name = config.group_names[group] if config.groups else ""

    def cure(self, text: str, name: str, *settings: str, seed: int | None = None) -> Cure:
        """A cure by settings, `key=value`, or by another seed. `name` is added to the name of the folder."""
        if self.arguments[:1] != ("train",):  # of 'nram learn', which chooses the settings itself
            return Cure(text)
        words = list(_without(self.arguments, ("resume", "json"), ("out", *(() if seed is None else ("seed",)))))
        words += [] if seed is None else ["--seed", str(seed)]
        keys = {setting.partition("=")[0] for setting in settings}
        for index in range(len(words) - 1, 0, -1):  # what is changed is not named twice
            if words[index - 1] == "--set" and words[index].partition("=")[0] in keys:
                del words[index - 1 : index + 1]
        words += [word for setting in settings for word in ("--set", setting)]
        return Cure(text, shlex.join(["nram", *words, "--out", pasted(Path(f"{self.path}-{name}"))]))

    def seed(self) -> Cure:
        seed = (self.whole.seed + 1) % 2**32
        return self.cure("Another seed. Nothing is as cheap, and one run says little.", f"seed{seed}", seed=seed)

    def registers(self) -> Cure:
        more = min(64, max(one.machine.registers for one in self.whole.group_configs) + 2)
        return self.cure("More registers. Training needs a few more than the program.", f"r{more}", f"registers={more}")

    def members(self) -> Cure:
        more = min(65_536, 4 * self.config.stages[0].population)
        text = "More members: each one is another chance."
        return self.cure(text, f"p{more}", f"stages.0.population={more}")

    def steps(self, stage: int, why: str = "the best member still got better when it ended") -> Cure:
        more = min(10**8, 3 * self.config.stages[stage].steps)
        where = f"stage {stage} of {self.name}" if self.group else f"stage {stage}"
        text = f"More steps in {where}: {why}."
        folder = f"{self.group.removesuffix('.').replace('groups.', 'group')}steps{more}"
        return self.cure(text, folder, f"{self.group}stages.{stage}.steps={more}")

    def culling(self, stage: int) -> list[Cure]:
        if self.config.stages[stage].cull.share or self.config.stages[stage].population < 4:
            return []
        text = "Culling: at every check clones of the best members replace the worst."
        return [self.cure(text, "cull", f"{self.group}stages.{stage}.cull.share=0.25")]

    def search(self) -> list[Cure]:
        """A search says whether there is a program, and how large. The task of `nram learn` has no name."""
        task = self.config.task
        if self.arguments[:1] != ("train",):
            return [Cure("More time (--budget), and more small examples: 'nram learn' chooses the settings itself.")]
        text = "A search: it says whether there is a program, and how many registers it needs."
        name, limit = self.config.task_name, known_task(task).step_limit
        if is_file_name(task):
            name = task
            text += f" If none is found within T(n) = {limit}, give the task a larger step_limit."
        return [Cure(text, shell_command("search", name, module=list(self.whole.module_files)))]

    def module(self) -> list[Cure]:
        """A user-defined module can do in one step what takes the others several."""
        if self.arguments[:1] != ("train",):
            return []
        text = "A module of your own, if a step of the program needs an operation that the machine lacks."
        return [Cure(text, shell_command("new", "module", "mine"))]

    def for_first_level(self) -> list[Cure]:
        cures = [self.seed(), self.registers(), *self.search(), self.members()]
        if self.config.machine.repeats == 1:
            twice = f"{self.group}repeats=2"
            cures.append(self.cure("Each module twice, if a step needs two READs or WRITEs.", "twice", twice))
        return cures + self.culling(0)

    def for_divergence(self) -> list[Cure]:
        hyper = self.config.hyper
        usual = HyperConfig().learning_rate
        rate = usual.as_config() if max(hyper.learning_rate.values) > 0.1 else _scaled(hyper.learning_rate, 0.1)
        settings = [f"{self.group}learning_rate={rate}"]
        settings += [f"{self.group}clip_gradient=1..10"] if math.inf in hyper.clip_gradient.values else []
        settings += [f"{self.group}clip_activations=1|10"] if math.inf in hyper.clip_activations.values else []
        clips = " and tighter clips" if len(settings) > 1 else ""
        return [self.cure(f"A lower learning rate{clips}.", "slower", *settings)]

    def for_unrolled(self, stage: int) -> list[Cure]:
        """Longer examples in this stage, and in all stages with the same size."""
        size, settings = self.config.stages[stage].max_complexity, []
        longer = max(6, 2 * size)
        if self.group:  # whose stages end at the size that the task names
            longer = min(longer, known_task(self.config.task).trained_up_to)
        for index, one in enumerate(self.config.stages):
            settings += [f"{self.group}stages.{index}.max_complexity={longer}"] if one.max_complexity == size else []
        text = "Longer examples in such stages, so that only a loop fits."
        cures = [self.cure(text, f"n{longer}", *settings)] if longer > size else []
        if self.config.stages[stage].step_slack > 2:
            tight = f"{self.group}stages.{stage}.step_slack=2"
            cures.append(self.cure("Fewer spare steps there, which leave room only for the loop.", "tight", tight))
        return cures

    def for_blur(self) -> list[Cure]:
        penalty = self.config.hyper.wire_penalty
        stronger = "0.1..0.6" if max(penalty.values) == 0 else _scaled(penalty, 3)
        crisp = f"{self.group}wire_penalty={stronger}"
        return [
            self.cure("A stronger wire penalty, which makes circuits crisp.", "crisp", crisp),
            self.cure("An earlier penalty.", "early", f"{self.group}penalty_start=200"),
        ]

    def for_halting(self) -> list[Cure]:
        penalty, last = self.config.hyper.time_penalty, len(self.config.stages) - 1
        more = "0.01..0.3" if max(penalty.values) == 0 else _scaled(penalty, 3)
        slack = 2 * self.config.stages[last].step_slack + 10
        spare = f"{self.group}stages.{last}.step_slack={slack}"
        return [
            self.cure("A time penalty, so that idling costs.", "halt", f"{self.group}time_penalty={more}"),
            self.cure("More spare steps in the last stage.", f"slack{slack}", spare),
        ]

    def for_length(self) -> list[Cure]:
        last = len(self.config.stages) - 1
        stage, where = self.config.stages[last], f"{self.group}stages.{last}"
        longer, spare = stage.max_complexity + 5, stage.extra_memory + 5
        cures = [self.cure("Spare memory in the last stage.", "memory", f"{where}.extra_memory={spare}")]
        if not self.group:  # the stages of a group end at the size that the task names
            cures += [self.cure("Longer examples there.", f"n{longer}", f"{where}.max_complexity={longer}")]
        return cures


def _without(words: tuple[str, ...], flags: tuple[str, ...], options: tuple[str, ...]) -> Iterator[str]:
    """The words of a command without these flags and options. Their names may be shortened."""
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        shortened = name[2:] if name.startswith("--") and len(name) > 2 else None
        if shortened and any(option.startswith(shortened) for option in options):
            _ = None if equals else next(rest, None)
        elif not (shortened and any(flag.startswith(shortened) for flag in flags)):
            yield word


def _scaled(values: Range, factor: float) -> str:
    scaled = [f"{value * factor:.3g}" for value in values.values]
    return (".." if values.continuous else "|").join(scaled)
