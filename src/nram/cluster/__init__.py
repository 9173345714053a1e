"""Studies of many trials of `nram train`, `nram search` or `nram learn`, and one search on many machines.

spec.py      what the specification of a study can say
spec_file.py the short TOML file with a specification: read and checked
plan.py      the trials that follow from it
options.py   the settings of trials of search and learn
checks.py    tasks, files and settings of all trials, checked before anything runs
study.py     the folder of a study: what it is, what each trial came to, and results.jsonl
trial.py     the trial function: it calls the same jobs as the verbs
process.py   a trial in a process of its own, which ends with the process that started it
pool.py      trials side by side on this machine
gpus.py      the GPUs of a machine, and how many trials share one by default
on_ray.py    the same trials on a Ray cluster, by Ray Tune
job.py       a study as a job: opened, checked, resumed and run

search.py          one search whose chains run here, or on a Ray cluster
chains_on_ray.py   its chains as tasks of Ray
connection.py      this process joins a Ray cluster
"""
