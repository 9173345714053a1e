"""A trace as one self-contained web page: the table with its changes and accesses, and the program."""

from __future__ import annotations

from html import escape

from nram.pictures.shapes import COLOURS
from nram.pictures.trace_records import Trace
from nram.pictures.trace_table import CAPTIONS, KEY, Column, Room, tabulate
from nram.programs.text import table_to_text


def _variables(column: int) -> str:
    return "".join(f"--{name}:{pair[column]};" for name, pair in COLOURS.items())


STYLE = (
    f"""
:root{{color-scheme:light dark;{_variables(0)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}
"""
    + """body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);margin:2rem}
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
thead th.asked{background:var(--asked);color:var(--ink)}
tbody td.changed,tbody tr:hover td.changed,.key .changed{background:var(--changed)}
thead tr:first-child th{font-weight:normal;text-align:left;color:var(--pale)}
thead tr:last-child th{top:1.7em}
th.cell,th.gap{font-style:italic;font-weight:normal;color:var(--pale)}
.read{box-shadow:inset 0 0 0 1px var(--read)}
.written{box-shadow:inset 0 0 0 2px var(--written)}
.written.read{box-shadow:inset 0 0 0 2px var(--written),inset 0 0 0 3px var(--read)}
.key span{display:inline-block;padding:0 .5rem;margin-right:.8rem}
.key .asked{background:var(--asked)}
pre{font:13px/1.4 ui-monospace,Menlo,Consolas,monospace;background:var(--band);padding:.8rem;overflow:auto}
"""
)


def trace_to_html(trace: Trace, *, most_cells: int | None = 256, most_steps: int | None = 1000) -> str:
    """The page. None shows all cells, or all steps."""
    if most_cells is None and most_steps is None:
        trace.require_listable()
    table = tabulate(trace, None if most_cells is None else Room(most_cells), most_steps)
    first = {id(group[0]) for group in table.groups[1:] if group}  # a line divides the groups

    def cell(tag: str, column: Column, word: str, marks: tuple[str, ...]) -> str:
        kinds = [*["first"] * (id(column) in first), *["words"] * (column.kind == "access"), *marks]
        kinds += [column.kind] * (tag == "th" and column.kind in ("cell", "gap"))
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        return f"<{tag}{kind}>{'&hellip;' if column.kind == 'gap' else escape(word)}</{tag}>"

    columns, last = table.columns, len(table.left_out)
    head = "".join(cell("th", column, column.heading, ("asked",) * column.asked) for column in columns)
    captions = "".join(
        f'<th{" class=first" * (i > 0)} colspan="{len(group)}">{caption}</th>'
        for i, (group, caption) in enumerate(zip(table.groups, CAPTIONS, strict=True))
    )
    rows = []
    for line, left_out in enumerate([*table.left_out, 0]):
        cells = "".join(cell("td", column, column.words[line], column.marks_of(line)) for column in columns)
        rows.append(("<tr>" if line < last else '<tr class="end">') + cells + "</tr>")
        if left_out:
            rows.append(f'<tr><td>&hellip;</td><td class="first words" colspan="99">{left_out} left out</td></tr>')
    ending, *verdict = trace.outcome()
    facts = [f"<p>{len(trace.start)} memory cells, {escape(ending)}.</p>"]
    facts += [f'<p class="{"wrong" if words.startswith("WRONG") else ""}">{escape(words)}.</p>' for words in verdict]
    if table.note:
        facts.append(f'<p class="pale">{escape(table.note)}.</p>')
    shown = [kind for kind in KEY if kind != "asked" or trace.output_cells]
    key = "".join(f'<span class="{kind}">{KEY[kind]}</span>' for kind in shown)
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
<thead><tr>{captions}</tr><tr>{head}</tr></thead>
<tbody>
{chr(10).join(rows)}
</tbody></table></div>
<details><summary>the program</summary>
<pre>{escape(table_to_text(trace.program))}</pre></details>
</body></html>
"""
