"""`nram prove` and `nram check`: proofs for every length, their certificates, and what the zoo ships."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "programs"


@pytest.fixture(scope="module")
def proven(tmp_path_factory) -> Path:
    """A folder with a program that the zoo does not have, and its certificate."""
    folder = tmp_path_factory.mktemp("proven")
    (folder / "copy.nram").write_text((PROGRAMS / "right/copy.nram").read_text())
    words = ["prove", "copy.nram", "--out", "copy.json"]
    done = subprocess.run([sys.executable, "-m", "nram", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("PROVEN FOR EVERY LENGTH"), done.stderr
    assert done.stdout.endswith("the certificate: copy.json\n")
    return folder


def test_a_certificate_is_checked(call, proven):
    outcome = call("check", proven / "copy.json", "--program", proven / "copy.nram", "--show")
    assert outcome.status == 0 and outcome.out.startswith("RIGHT: ")
    assert "it halts within T(n) = 2n+4 steps" in outcome.out and "Place 1:" in outcome.out
    refused = call("check", proven / "copy.json", "--program", "reverse@searched")
    assert refused.status == 1 and refused.out.startswith("REFUSED: it is of another program than reverse, ")


def test_json_tells_of_every_refusal(call, proven, tmp_path):
    altered = json.loads((proven / "copy.json").read_text()) | {"fingerprint": "0" * 16}
    (tmp_path / "altered.json").write_text(json.dumps(altered))
    outcome = call("check", tmp_path / "altered.json", "--json")
    assert (outcome.status, outcome.value["right"]) == (1, False)
    assert "the fingerprints differ" in outcome.value["problem"]
    shown = call("check", proven / "copy.json", "--show", "--json").value
    assert shown["right"] and any(line.startswith("Place 1: ") for line in shown["invariant"])


def test_a_program_of_the_zoo_is_checked_by_its_name(call):
    outcome = call("check", "reverse@searched", "--json")
    assert (outcome.status, outcome.value["right"], outcome.value["task"]) == (0, True, "reverse")
    card = call("zoo", "reverse@searched", "--json").value
    assert card["certificate"] and outcome.value["fingerprint"] == card["verified"][0]["fingerprint"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("copied", "there is no certificate 'copied': no such file, and no program of the zoo has this name"),
        ("PROGRAM", "is a program, not a certificate: 'nram prove' makes one of it (--out)"),
        ("EMPTY", "it is not JSON"),
    ],
)
def test_what_is_no_certificate_is_refused(call, tmp_path, name, hint):
    (tmp_path / "empty.json").write_text("")
    files = {"PROGRAM": PROGRAMS / "right/copy.nram", "EMPTY": tmp_path / "empty.json"}
    outcome = call("check", files.get(name, name))
    assert outcome.status != 0 and outcome.out == ""
    assert hint in outcome.err and outcome.err.count("\n") == 1


def test_verify_takes_a_certificate_and_the_card_then_says_so(call, proven, tmp_path):
    alone = ("--max-n", 0, "--symbolic", 0, "--largest", 0)
    out = tmp_path / "copy.nram"
    certificate = ("--certificate", proven / "copy.json")
    outcome = call("verify", proven / "copy.nram", *alone, *certificate, "--out", out)
    assert outcome.status == 0
    assert "RIGHT UNDER EVERY LIMIT: proven for every length\n" in outcome.out
    assert "guess" not in outcome.err  # no new proof is looked for
    assert "verified: inductive task=copy n=1.. M=every limits=every halts=yes" in out.read_text()
    assert "copy  inductive  every" in call("show", out).out
    altered = json.loads((proven / "copy.json").read_text())
    altered["obligations"].pop()
    (tmp_path / "altered.json").write_text(json.dumps(altered))
    for other, hint in ((tmp_path / "altered.json", "is missing"), ("reverse@searched", "is about another program")):
        refused = call("verify", proven / "copy.nram", *alone, "--certificate", other, "--out", tmp_path / "no.nram")
        assert refused.status != 0 and hint in refused.err
        assert not (tmp_path / "no.nram").exists()


def test_a_program_that_is_not_proven_writes_no_certificate(call, tmp_path):
    out = tmp_path / "c.json"
    outcome = call("prove", PROGRAMS / "wrong/fifth_element.nram", "--out", out)
    assert outcome.status == 1 and outcome.out.startswith("WRONG")
    assert outcome.err.endswith(f"nram prove: {out} was not written\n") and not out.exists()


def test_a_program_that_must_be_stopped_is_not_called_wrong(call):
    outcome = call("prove", PROGRAMS / "stopped/increment.nram")
    assert outcome.status == 1 and outcome.out.startswith("RIGHT ONLY AT T(n) ")


def test_the_smallest_instance_is_shown_also_where_the_memory_must_be_large(call):
    outcome = call("prove", PROGRAMS / "wrong/large_memory.nram", "--json")
    found = outcome.value["counterexample"]
    assert (found["complexity"], len(found["memory"])) == (1, 17)


@pytest.mark.parametrize("verb", ["prove", "check"])
def test_ctrl_c_ends_a_proof_at_once_and_leaves_no_file(verb, tmp_path):
    words = ["prove", "merge@searched", "--out", "merge.json"] if verb == "prove" else ["check", "merge@searched"]
    at_work = "guess 1 of" if verb == "prove" else "cvc5"
    process = subprocess.Popen(
        [sys.executable, "-m", "nram", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    while at_work not in (line := process.stderr.readline()):
        assert line, "it ended before the signal"
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 5
    assert (process.returncode, out, err) == (1, "", f"\nnram {verb}: interrupted\n")
    assert not list(tmp_path.iterdir())
