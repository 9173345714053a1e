"""Kills: jobs of `nram train`, `search`, `learn` and `sweep` that are killed, or whose folder makes trouble.

    PYTHONPATH=tests python -m kills --kills 120          # until so many processes were killed
    PYTHONPATH=tests python -m kills --jobs search --troubles none --seed 3

Each trial starts one job as a user would, kills it several times at random moments with a random signal, resumes it,
and compares its files with those of an undisturbed run, bit for bit but for times. In some trials the disk becomes full
or the folder read-only in between: then the command must say so, exit with 1 (or 2 if it had not begun its work), leave
every file whole, and end with the same bits when there is room again.

jobs.py     the jobs, and which of their bits must be the same
trouble.py  full disks and read-only folders
trials.py   processes, signals, verdicts and the summary
"""
