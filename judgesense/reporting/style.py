"""The report page's style sheet: light and dark, readable in print and by the colour-blind.

Verdicts carry a mark beside their colour (Okabe and Ito's palette, darkened or lightened until
text in it reads at 4.5:1 on the page).
"""

LIGHT = """\
  --paper: #ffffff; --page: #f6f6f3; --ink: #1c1e21; --soft: #5c6166; --line: #dcdcd6;
  --blue: #0a5f9e; --orange: #b14a00; --amber: #7a5c00; --plum: #8f3f78; --grey: #75797d;
  --blue-fill: #4c9fd4; --orange-fill: #e8854a;"""

DARK = """\
  --paper: #1d2023; --page: #141618; --ink: #e8e8e4; --soft: #a3a8ad; --line: #363b40;
  --blue: #74bdf0; --orange: #ff9d5c; --amber: #e8c34a; --plum: #e3a1cf; --grey: #92979c;
  --blue-fill: #2f7fb5; --orange-fill: #b85a22;"""

CSS = (
    """
:root { color-scheme: light dark;
"""
    + LIGHT
    + """ }
@media (prefers-color-scheme: dark) { :root {
"""
    + DARK
    + """ } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: break-word;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 .3rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0 .8rem; max-width: 46rem; }
.meta, .note { color: var(--soft); font-size: .875rem; }
.meta span + span::before { content: "·"; margin: 0 .5em; }
code { font: .85em/1.4 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.cards { display: grid; gap: .8rem; margin: 1.4rem 0;
  grid-template-columns: repeat(auto-fill, minmax(14.5rem, 1fr)); }
.card, .panel { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem; }
.card { padding: .9rem 1rem; border-top: 4px solid var(--tone); }
.card h3 { margin: 0; display: flex; justify-content: space-between; gap: .6rem; }
.card .who { color: var(--soft); font-size: .8rem; }
.card .big { font-size: 2.1rem; font-weight: 650; line-height: 1.15; margin: .35rem 0 0;
  font-variant-numeric: tabular-nums; }
.card .big small { font-size: .85rem; font-weight: 400; color: var(--soft); margin-left: .35rem; }
.card dl { display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .5rem 0 0; font-size: .8rem; }
.card dl div { display: flex; gap: .3rem; }
.card dt { color: var(--soft); } .card dd { margin: 0; font-variant-numeric: tabular-nums; }
.verdict { color: var(--tone); font-weight: 600; font-size: .85rem; white-space: nowrap; }
.reliable { --tone: var(--blue); } .unstable { --tone: var(--orange); }
.undecided { --tone: var(--amber); } .degenerate { --tone: var(--plum); }
.baseline { --tone: var(--grey); }
.panel { padding: 1rem; overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
.figures { width: 100%; }
.figures th { font-weight: 600; text-align: right; color: var(--soft); font-size: .8rem;
  vertical-align: bottom; }
.figures th, .figures td { padding: .35rem .5rem; border-bottom: 1px solid var(--line);
  text-align: right; }
.figures td { white-space: nowrap; } .figures small { color: var(--soft); }
.figures td:first-child { white-space: normal; min-width: 7rem; overflow-wrap: anywhere; }
.figures .text { text-align: left; } .figures tr.baseline td { color: var(--soft); }
.figures tbody + tbody tr:first-child td { border-top: 2px solid var(--soft); }
.figures .strong { font-weight: 650; }
svg { display: block; width: 100%; height: auto; min-width: 36rem; }
svg text { fill: var(--ink); font-size: 13px; }
svg .soft { fill: var(--soft); font-size: 12px; } svg .head { font-weight: 650; }
svg .grid { stroke: var(--line); } svg .limit { stroke: var(--soft); stroke-dasharray: 4 3; }
svg .zone { fill: var(--blue-fill); opacity: .1; }
svg .bar { stroke: var(--tone); stroke-width: 3; stroke-linecap: round; }
svg .dot { fill: var(--tone); stroke: var(--paper); stroke-width: 1.5; }
svg .hollow { fill: var(--paper); stroke: var(--tone); stroke-width: 1.6; }
svg .tone { fill: var(--tone); font-weight: 600; }
.advice { list-style: none; padding: 0; margin: .6rem 0 0; display: grid; gap: .8rem;
  align-items: start; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); }
.advice > li { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem;
  border-left: 4px solid var(--tone); padding: .7rem 1rem; font-size: .92rem; }
.advice p { margin: 0 0 .2rem; }
.advice ul { margin: .2rem 0 0; padding-left: 1.1rem; list-style: disc; }
.advice li li { margin: .15rem 0; }
.grids { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); }
.grids .panel h3 { margin: 0 0 .5rem; }
.heat { font-size: .8rem; } .heat th { font-weight: 500; color: var(--soft); padding: .2rem .4rem;
  text-align: center; white-space: nowrap; }
.heat .down { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left;
  margin: 0 auto; }
.grids .wide { grid-column: 1 / -1; }
.heat th:first-child { text-align: right; }
.heat tr:first-child th { vertical-align: bottom; }
.heat .same { background: var(--page); }
.heat td { min-width: 2.5rem; padding: 0 .15rem; height: 2.3rem; text-align: center;
  border: 2px solid var(--paper); }
.heat .low { background: color-mix(in srgb, var(--orange-fill) var(--t), var(--paper)); }
.heat .high { background: color-mix(in srgb, var(--blue-fill) var(--t), var(--paper)); }
.heat .none { color: var(--soft); }
.heat .side { color: var(--soft); width: auto; padding: 0 .4rem; white-space: nowrap;
  overflow-wrap: normal; }
.key { display: flex; gap: 1.2rem; flex-wrap: wrap; font-size: .8rem; color: var(--soft);
  margin: .2rem 0 .8rem; }
.key i { display: inline-block; width: 1.1em; height: 1.1em; border-radius: .2em;
  margin-right: .4em; vertical-align: -.2em; border: 1px solid var(--line); }
.flip { margin: .8rem 0; padding: 0; overflow: hidden; break-inside: avoid; }
.flip header { padding: .6rem 1rem; border-bottom: 1px solid var(--line); font-size: .875rem; }
.two { display: grid; grid-template-columns: 1fr 1fr; }
.two > div { padding: .8rem 1rem; min-width: 0; }
.two > div + div { border-left: 1px solid var(--line); }
.two .name { font-size: .8rem; color: var(--soft); }
.two pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; max-height: 18rem;
  overflow-y: auto; font: .85rem/1.5 inherit; font-family: inherit; }
.two pre .same { color: var(--soft); } .two pre b { font-weight: 600; }
.answer { font-size: .95rem; margin: .5rem 0 0; }
.answer strong { font-size: 1.25rem; margin-right: .4rem; }
.signatures { font-size: .75rem; }
.signatures td { padding: .1rem .8rem .1rem 0; vertical-align: top; }
.signatures code { overflow-wrap: anywhere; }
footer { margin-top: 3rem; color: var(--soft); font-size: .8rem; }
@media (max-width: 42rem) { .two { grid-template-columns: 1fr; }
  .two > div + div { border-left: 0; border-top: 1px solid var(--line); } }
@media print {
  :root { --paper: #fff; --page: #fff; --ink: #000; --soft: #444; --line: #bbb; --blue: #0a5f9e;
    --orange: #b14a00; --amber: #6b5000; --plum: #8f3f78; --grey: #666;
    --blue-fill: #4c9fd4; --orange-fill: #e8854a; }
  @page { margin: 1.4cm; } body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  .card, .panel, .advice > li, figure { break-inside: avoid; }
  h2, h3, .note, .key { break-after: avoid; }
  .panel { overflow: visible; } .figures { font-size: 7.5pt; }
  .figures th, .figures td { padding: .2rem .3rem; }
  .two pre { max-height: none; overflow: visible; } svg { min-width: 0; } }
"""
)
