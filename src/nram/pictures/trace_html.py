"""A trace as a web page that needs nothing else: the table, what changed and what was touched, and the program."""

from __future__ import annotations

from html import escape

from nram.pictures.trace_records import Line, Room, Trace, excerpt
from nram.programs.text import table_to_text

STYLE = """
:root{color-scheme:light dark;--ink:#1c2733;--ground:#ffffff;--pale:#5d6b79;--line:#d5dce3;--band:#f3f6f9;
--changed:#ffe9a8;--asked:#dfeee3;--read:#2f6fab;--written:#c62f45}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--ground:#161b21;--pale:#9aa7b4;--line:#36414c;--band:#1f262e;
--changed:#5c4a12;--asked:#20402c;--read:#6fb1ee;--written:#ff7a8c}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);margin:2rem}
h1{font-size:1.3rem;margin:0 0 .3rem}
p{margin:.3rem 0}
.pale{color:var(--pale)}
.wrong{color:var(--written);font-weight:bold}
.scroll{overflow:auto;max-height:80vh;margin:1rem 0;border:1px solid var(--line);width:fit-content;max-width:100%}
table{border-collapse:separate;border-spacing:0;font:13px/1.4 ui-monospace,Menlo,Consolas,monospace}
th,td{padding:.15rem .45rem;text-align:right;white-space:nowrap}
thead th{position:sticky;top:0;z-index:1;background:var(--band);border-bottom:1px solid var(--line)}
tbody tr:hover td{background:var(--band)}
th:first-child,td:first-child{position:sticky;left:0;z-index:1;background:var(--band)}
thead th:first-child{z-index:2}
.first{border-left:1px solid var(--line)}
.words{text-align:left}
tr.end td{border-top:1px solid var(--line)}
thead th.asked{background:var(--asked)}
tbody td.changed,tbody tr:hover td.changed,.key .changed{background:var(--changed)}
.read{box-shadow:inset 0 0 0 1px var(--read)}
.written{box-shadow:inset 0 0 0 2px var(--written)}
.key span{display:inline-block;padding:0 .5rem;margin-right:.8rem}
.key .asked{background:var(--asked)}
pre{font:13px/1.4 ui-monospace,Menlo,Consolas,monospace;background:var(--band);padding:.8rem;overflow:auto}
"""


def trace_to_html(trace: Trace, *, most_cells: int | None = 256, most_steps: int | None = 1000) -> str:
    """The page. None shows all cells, or all steps."""
    if most_cells is None and most_steps is None:
        trace.require_listable()
    part = excerpt(trace, None if most_cells is None else Room(most_cells), most_steps)
    columns = part.columns()
    asked = trace.output_cells
    names = trace.program.registers
    head = ["<th>step</th>"]
    for i, place in enumerate(columns):
        kinds = ["first"] * (i == 0) + ["asked"] * (place is not None and part.cells[place] in asked)
        head.append(_cell("th", "&hellip;" if place is None else str(part.cells[place]), kinds))
    head += [_cell("th", escape(name), ["first"] * (i == 0)) for i, name in enumerate(names)]
    head += ['<th class="first words">READ</th><th class="first words">WRITE</th>']
    head += [f'<th class="first">{"row" if len(trace.program.states) == 1 else "state:row"}</th>']

    rows = []
    before: Line | None = None
    for line in part.lines:
        rows.append(_row(trace, part.cells, columns, line, before))
        if line.left_out:
            rows.append(f'<tr><td>&hellip;</td><td class="first words" colspan="99">{line.left_out} left out</td></tr>')
        before = line
    ending, *verdict = trace.outcome()
    facts = [f"<p>{len(trace.start)} memory cells, {escape(ending)}.</p>"]
    facts += [f'<p class="{"wrong" if words.startswith("WRONG") else ""}">{escape(words)}.</p>' for words in verdict]
    if note := part.note():
        facts.append(f'<p class="pale">{escape(note)}.</p>')
    key = '<span class="changed">changed by the step before</span><span class="read">read</span>'
    key += '<span class="written">written</span>' + ('<span class="asked">output cell</span>' if asked else "")
    name = escape(trace.program.name)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: trace</title>
<style>{STYLE}</style></head>
<body>
<h1>{name}</h1>
{chr(10).join(facts)}
<p class="pale">Memory and registers at the start of every step. p: the pointer, a: the value written.</p>
<p class="key">{key}</p>
<div class="scroll"><table>
<thead><tr>{"".join(head)}</tr></thead>
<tbody>
{chr(10).join(rows)}
</tbody></table></div>
<details><summary>the program</summary>
<pre>{escape(table_to_text(trace.program))}</pre></details>
</body></html>
"""


def _row(trace: Trace, cells: tuple[int, ...], columns: list[int | None], line: Line, before: Line | None) -> str:
    step = line.step
    read = {access.pointer for access in step.reads} if step else set()
    written = {access.pointer for access in step.writes} if step else set()
    parts = [f"<td>{line.label}</td>"]
    for i, place in enumerate(columns):
        kinds = ["first"] * (i == 0)
        if place is not None:
            kinds += ["changed"] * (before is not None and before.memory[place] != line.memory[place])
            kinds += ["written"] if cells[place] in written else ["read"] if cells[place] in read else []
        parts.append(_cell("td", "&hellip;" if place is None else str(line.memory[place]), kinds))
    for i, value in enumerate(line.registers):
        kinds = ["first"] * (i == 0) + ["changed"] * (before is not None and before.registers[i] != value)
        parts.append(_cell("td", str(value), kinds))
    words = (step.reads_in_words, step.writes_in_words, trace.place(step)) if step else ("", "", "")
    parts += [_cell("td", word, kinds) for word, kinds in zip(words, _WORDS, strict=True)]
    return ("<tr>" if step else '<tr class="end">') + "".join(parts) + "</tr>"


_WORDS = (["first", "words"], ["first", "words"], ["first"])


def _cell(tag: str, content: str, kinds: list[str]) -> str:
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<{tag}{kind}>{content}</{tag}>"
