"use strict";
/* The list of items: filters, search, sort and keyboard over the rows in the page, whose view is in the
   page's address. Only the rows in sight are drawn, so that thousands scroll as a few do. */
(async () => {
const source = document.getElementById("listed");
if (!source) return;
const box = /** @type {HTMLElement} */ (document.querySelector(".listed"));
/** @type {<T extends HTMLElement = HTMLElement>(what: string) => T} */
const get = (what) => /** @type {any} */ (box.querySelector(what));
const unpacked = async () => {
  const text = source.textContent || "";
  if (source.getAttribute("type") === "application/json") return text;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
const data = JSON.parse(await unpacked());
const list = get(".list"), space = /** @type {HTMLElement} */ (list.firstElementChild), detail = get(".detail");
const find = /** @type {HTMLInputElement} */ (get("input")), status = get("[role=status]"), facets = get(".facets");
const choice = /** @type {HTMLSelectElement | null} */ (box.querySelector(".case"));
const sort = /** @type {HTMLSelectElement} */ (get(".sort")), keys = /** @type {HTMLDialogElement} */ (get("dialog"));
if (data.what) sort.options[0].textContent = "as listed";
const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (box.querySelectorAll(".filters button"));

/** @type {Item[]} */
const items = data.items.map((/** @type {any[]} */ [id, brief, texts, groups]) => ({id, brief, texts, groups}));
/** @type {Row[]} */
const rows = data.rows.map((/** @type {any[]} */ [kind, item, kinds, answers], /** @type {number} */ number) => ({
  number, case: data.cases[kind], item: items[item], kinds,
  answers: answers.map((/** @type {any[]} */ [order, label, verdict, margin, verdicts, texts, people, shares]) =>
    ({order, label, verdict, margin, verdicts, answers: texts, people, shares})),
}));
if (rows.every((row) => row.answers.every((each) => each.margin === null))) sort.querySelector("[value=margin]")?.remove();
/** @type {Map<Item, Row[]>} */
const judged = new Map();
rows.forEach((row) => judged.set(row.item, [...(judged.get(row.item) || []), row]));
const kindsOf = (/** @type {Row} */ row) => data.kinds.filter((/** @type {string} */ _, /** @type {number} */ n) => row.kinds >> n & 1);

/* The view, as in the address: its parameters are what a link to some items says. */
const FACETS = ["group", "person", "label", "verdict", "wording", "with"];
const NAMES = ["judge", "filter", "q", "sort", ...FACETS, "item"];
/** @type {Record<string, string>} */
let view = {};
const first = data.cases[0].name, START = {judge: first};
const linked = () => {
  const found = new URLSearchParams(location.hash.slice(1));
  return NAMES.some((name) => found.has(name)) ? {...START, ...Object.fromEntries([...found].filter(([name]) => NAMES.includes(name)))} : null;
};
const address = () => {
  const kept = Object.entries(view).filter(([name, value]) => value !== (/** @type {Texts} */ (START)[name] ?? ""));
  return `#${new URLSearchParams(view.judge === first && kept.length ? [["judge", first], ...kept] : kept)}`;
};
let writing = 0;
const remember = () => {
  clearTimeout(writing);
  // Browsers refuse an address that changes at each key of a held one.
  writing = setTimeout(() => history.replaceState(null, "", address()), 150);
};

/** Each filter as a test of a row; `filter` is counted for each kind. */
const labelOf = (/** @type {Answer} */ answer) => view.person ? answer.people[view.person] ?? null : answer.label;
const says = (/** @type {Answer} */ answer) => view.wording && !view.with ? [answer.verdicts[view.wording]] : Object.values(answer.verdicts);
const inGroup = (/** @type {Row} */ row) => {
  // The figures of groups are those of items that were answered.
  if (row.answers.every((each) => Object.values(each.verdicts).every((verdict) => verdict === "ERROR"))) return false;
  const cut = view.group.indexOf(": "), [by, name] = [view.group.slice(0, cut), view.group.slice(cut + 2)];
  if (by === "label" && !("label" in row.item.texts)) return row.answers.some((each) => ofItem(row, each, each.label) === name);
  return (row.item.groups[by] ?? row.item.texts[by]) === name;
};
const inCell = (/** @type {Answer} */ answer) => {
  const label = labelOf(answer), verdicts = says(answer);
  if (view.label && label !== view.label) return false;
  if (view.verdict) return verdicts.includes(view.verdict);
  if (view.label) return true;
  if (view.with) return answer.verdicts[view.wording] !== answer.verdicts[view.with];
  if (view.wording) return answer.verdicts[view.wording] !== answer.verdict;
  return label !== null && label !== answer.verdict && answer.verdict !== "ERROR";
};
const words = (/** @type {Row} */ row) => {
  row.item.words ??= [row.item.id, ...Object.values(row.item.texts)].join("\n").toLowerCase();
  row.words ??= row.answers.flatMap((each) => [each.label, each.verdict, ...Object.values(each.people), ...Object.values(each.answers)]).join("\n").toLowerCase();
  return [row.item.words, row.words];
};
/** @type {Row[]} */
let shown = [];
let at = -1;
const HEIGHT = 72, MORE = 8;
const line = (/** @type {Row} */ row, /** @type {number} */ place) => {
  const made = element("div", {role: "option", id: `listed-${place}`, class: "entry", "aria-selected": place === at,
    "aria-posinset": place + 1, "aria-setsize": shown.length, style: `top:${place * HEIGHT}px`, "data-at": place});
  const [answer] = row.answers, label = ofItem(row, answer, answer.label);
  made.append(element("b", {}, row.item.brief || row.item.id),
    element("span", {class: "said"}, said(row), ...(label === null ? [] : [element("small", {}, ` label ${label}`)])),
    element("span", {class: "snippet"}, [row.item.brief ? row.item.id : "", view.judge ? "" : row.case.name].filter(Boolean).join(" · ")),
    element("span", {class: "kinds"}, kindsOf(row).join(", ")));
  return made;
};
const draw = () => {
  const top = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - MORE);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + MORE);
  const lines = [];
  for (let place = top; place < last; place += 1) lines.push(line(shown[place], place));
  // What assistive technology follows stays in the page, in sight or not.
  if (at >= 0 && at < shown.length && (at < top || at >= last)) lines.push(line(shown[at], at));
  space.replaceChildren(...lines);
};
/** @type {Record<string, (one: Row, two: Row) => number>} */
const ORDERS = {
  item: (one, two) => one.item.id.localeCompare(two.item.id, undefined, {numeric: true}),
  margin: (one, two) => least(one) - least(two),
  length: (one, two) => words(two)[0].length - words(one)[0].length,
};
const least = (/** @type {Row} */ row) => Math.min(...row.answers.map((each) => each.margin ?? Infinity), 9);
const apply = () => {
  const wanted = (view.q || "").trim().toLowerCase();
  const cell = FACETS.slice(1).some((name) => view[name]);
  const fitting = rows.filter((row) => (!view.judge || row.case.name === view.judge) && (!view.group || inGroup(row))
    && (!cell || row.answers.some(inCell)) && (!wanted || words(row).some((text) => text.includes(wanted))));
  const bit = 1 << data.kinds.indexOf(view.filter), kept = shown[at]?.item.id ?? "";
  shown = view.filter && bit ? fitting.filter((row) => row.kinds & bit) : fitting;
  if (ORDERS[view.sort]) shown = [...shown].sort(ORDERS[view.sort]);
  buttons.forEach((button) => {
    const own = 1 << data.kinds.indexOf(button.value);
    const n = button.value ? fitting.filter((row) => row.kinds & own).length : fitting.length;
    button.setAttribute("aria-pressed", String(button.value === (view.filter || "")));
    /** @type {HTMLElement} */ (button.querySelector("small")).textContent = String(n);
  });
  find.value = document.activeElement === find ? find.value : view.q || "";
  sort.value = view.sort || "";
  if (choice) choice.value = view.judge;
  const chips = FACETS.filter((name) => view[name]).map((name) => {
    const button = element("button", {type: "button", "aria-label": `Remove ${name} ${view[name]}`}, `${name} ${view[name]} ×`);
    button.addEventListener("click", () => change({[name]: ""}));
    return button;
  });
  facets.replaceChildren(...chips);
  space.style.height = `${shown.length * HEIGHT}px`;
  const total = view.judge ? rows.filter((row) => row.case.name === view.judge).length : rows.length;
  status.textContent = `${shown.length} of ${total} items`;
  list.scrollTop = 0;
  const place = shown.findIndex((row) => row.item.id === (view.item || kept));
  select(place < 0 && shown.length ? 0 : place);
};
const change = (/** @type {Record<string, string>} */ some) => {
  view = {...view, item: "", ...some};
  apply();
  remember();
};
const select = (/** @type {number} */ place) => {
  at = place;
  if (at >= 0) {
    const top = at * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    list.setAttribute("aria-activedescendant", `listed-${at}`);
  } else list.removeAttribute("aria-activedescendant");
  draw();
  open(shown[at]);
};
const step = (/** @type {number} */ by) => {
  if (!shown.length) return;
  select(Math.min(shown.length - 1, Math.max(0, at + by)));
  view.item = shown[at].item.id;
  remember();
};
const tool = (/** @type {string} */ name, /** @type {string} */ text, /** @type {(button: HTMLElement) => void} */ act) => {
  const button = element("button", {type: "button", class: name}, text);
  button.addEventListener("click", () => act(button));
  return button;
};
const open = (/** @type {Row | undefined} */ row) => {
  detail.replaceChildren();
  if (!row) { detail.append(element("p", {class: "note"}, "No item fits.")); return; }
  detail.append(element("div", {class: "tools"}, tool("before", "‹ Previous", () => step(-1)), tool("after", "Next ›", () => step(1)),
    element("small", {}, `${at + 1} of ${shown.length}`), tool("copied", "Copy item", (button) => copyText(button, itemText(row)))));
  showItem(detail, row, kindsOf(row), data.wordings[row.case.task] || {}, data.what);
  const others = (judged.get(row.item) || []).filter((each) => each !== row).map((each) => {
    const link = element("a", {href: `#${new URLSearchParams({judge: each.case.name, item: each.item.id})}`}, `${each.case.name}: ${said(each)}`);
    return element("li", {}, link);
  });
  if (others.length) detail.append(folded("Other judges on this item", element("ul", {}, ...others), 0));
  detail.scrollTop = 0;
};

/* A cell of the file must be no formula to a spreadsheet, as in those that Python writes. */
const cell = (/** @type {string | number | null} */ value) => {
  const text = String(value ?? "");
  const inert = /^'*[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
};
const csv = () => {
  const named = new Set(shown.flatMap((row) => Object.keys(row.item.texts)));
  const head = ["judge", "task", "item_id", "order", "kinds", "label", "verdict", "margin", "verdicts", "answers", "people"];
  const lines = shown.flatMap((row) => row.answers.map((each) => [row.case.name, row.case.task, row.item.id, each.order, kindsOf(row).join(", "),
    each.label, each.verdict, each.margin, ...[each.verdicts, each.answers, each.people].map((some) => JSON.stringify(some)),
    ...[...named].map((name) => row.item.texts[name] ?? "")]));
  return [[...head, ...[...named].map((name) => head.includes(name) ? `${name} (item)` : name)], ...lines]
    .map((cells) => cells.map(cell).join(",")).join("\n");
};
get(".rows").addEventListener("click", () => {
  const url = URL.createObjectURL(new Blob([`${csv()}\n`], {type: "text/csv"}));
  element("a", {href: url, download: "items.csv"}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
});
get(".link").addEventListener("click", () => {
  view.item = shown[at]?.item.id ?? "";
  history.replaceState(null, "", address());
  copyText(get(".link"), location.href);
});
get(".help").addEventListener("click", () => keys.showModal());

let waiting = 0;
list.addEventListener("scroll", () => { waiting ||= requestAnimationFrame(() => { waiting = 0; draw(); }); });
list.addEventListener("click", (event) => {
  const chosen = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".entry"));
  if (chosen) step(Number(chosen.dataset.at) - at);
});
buttons.forEach((button) => button.addEventListener("click", () => change({filter: button.value})));
/** @type {number | undefined} */
let typing;
find.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => change({q: find.value}), 80); });
sort.addEventListener("change", () => change({sort: sort.value}));
choice?.addEventListener("change", () => change({judge: choice.value}));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const target = /** @type {HTMLElement} */ (event.target);
  if (target === find && ["Enter", "Escape"].includes(event.key)) { list.focus(); return; }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  /** @type {Record<string, number>} */
  const steps = {j: 1, k: -1, ...(target === list && {ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8,
    Home: -shown.length, End: shown.length})};
  if (event.key === "/") find.focus();
  else if (event.key === "?") keys.showModal();
  else if (event.key === "o") {
    const folds = detail.querySelectorAll("details"), fold = [...folds].every((each) => each.open);
    folds.forEach((each) => { each.open = !fold; });
  } else if (event.key in steps && shown.length) {
    step(steps[event.key]);
    box.scrollIntoView({block: "nearest"});
  } else return;
  event.preventDefault();
});
const visit = () => {
  const wanted = linked();
  if (!wanted) return;
  view = wanted;
  apply();
  box.scrollIntoView({block: "start"});
};
addEventListener("hashchange", visit);
box.hidden = false;
/** @type {HTMLElement} */ (document.querySelector(".plain")).hidden = true;
view = {...START};
apply();
visit();
})();
