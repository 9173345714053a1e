"""Fuzzing: broken and hostile files for everything that nram reads.

    PYTHONPATH=tests python -m fuzz --inputs 1000                           # of each kind of file
    PYTHONPATH=tests python -m fuzz --kinds states --seed 3 --only 1234     # one input: shows it and what comes of it

An input must be read, or refused with an NramError. Everything else is a finding: another exception, a warning, a
crash, too much time or memory, or a value that changes when it is written and read again.

mutations.py     broken JSON, TOML, text and bytes
binary.py        broken .npy and safetensors files
python_files.py  tasks and modules whose functions return hostile values
kinds.py         the kinds of files: valid ones, and what nram does with one
runner.py        worker processes, verdicts, findings and the summary
"""
