"use strict";
/* One item of the list: what a judge said of it under each wording and in each order, and its texts.
   Every text becomes a text node, so that none of it acts. */

/**
 * @typedef {Record<string, string>} Texts
 * @typedef {{name: string, task: string, labels: [string, string] | null}} Case
 * @typedef {{order: string, label: string | null, verdict: string | null, margin: number | null,
 *   verdicts: Texts, answers: Texts, people: Texts, shares: Record<string, number>}} Answer
 * @typedef {{id: string, brief: string, texts: Texts, groups: Texts, words?: string}} Item
 * @typedef {{number: number, case: Case, item: Item, kinds: number, answers: Answer[], words?: string}} Row
 */

/** A label as shown, in the order AB: in BA the two options change places.
 * @param {Row} row @param {Answer} answer @param {string | null} label */
const ofItem = (row, answer, label) => {
  const two = row.case.labels, at = two && label !== null && answer.order === "BA" ? two.indexOf(label) : -1;
  return two && at >= 0 ? two[1 - at] : label;
};
/** What a judge says of an item, in words. @param {Row} row */
const said = (row) => {
  const [one, two] = row.answers;
  if (!two || !row.case.labels || row.answers.length > 2) {
    return row.answers.map((each) => (two ? `${each.order}: ${each.verdict}` : each.verdict || "")).join(", ");
  }
  const [first, second] = [one, two].map((each) => ofItem(row, each, each.verdict));
  if (first === second) return `${first} in both orders`;
  const place = one.verdict === two.verdict ? row.case.labels.indexOf(one.verdict || "") : -1;
  if (place >= 0) return `picks the ${["first", "second"][place]} both times`;
  return `${one.order}: ${one.verdict}, ${two.order}: ${two.verdict}`;
};

/** Two texts in pieces; those that the other lacks are marked: the longest common words stay.
 * @param {string} one @param {string} two @returns {(Node | string)[][]} */
const differing = (one, two) => {
  const split = (/** @type {string} */ text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  const [a, b] = [split(one), split(two)];
  let start = 0, end = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [x, y] = [a, b].map((each) => each.slice(start, each.length - end));
  const same = [new Set(), new Set()];
  if (x.length * y.length < 1e6) {
    const wide = y.length + 1, longest = new Uint16Array((x.length + 1) * wide);
    for (let i = x.length - 1; i >= 0; i -= 1) for (let j = y.length - 1; j >= 0; j -= 1) {
      longest[i * wide + j] = x[i] === y[j] ? longest[(i + 1) * wide + j + 1] + 1
        : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
    }
    for (let i = 0, j = 0; i < x.length && j < y.length;) {
      if (x[i] === y[j]) { same[0].add(start + i); same[1].add(start + j); i += 1; j += 1; }
      else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) i += 1; else j += 1;
    }
  }
  return [a, b].map((all, side) => {
    /** @type {[string, boolean][]} */
    const pieces = [];
    all.forEach((word, n) => {
      const alike = n < start || n >= all.length - end || same[side].has(n);
      const last = pieces.at(-1);
      if (last && last[1] === alike) last[0] += word; else pieces.push([word, alike]);
    });
    return pieces.map(([text, alike]) => alike ? text : element("mark", {}, text));
  });
};

const FOLD = 400;
/** @param {string} name @param {Node} body @param {number} size @param {boolean} [unfold] */
const folded = (name, body, size, unfold) =>
  element("details", unfold ?? size <= FOLD ? {open: ""} : {}, element("summary", {}, name), body);
/** @param {string} name @param {string} text @param {boolean} [unfold] */
const foldedText = (name, text, unfold) => folded(name, element("div", {class: "text"}, text), text.length, unfold);
/** @param {string} heading @param {string[]} names @param {string[]} texts */
const pair = (heading, names, texts) => {
  const marked = differing(texts[0], texts[1]);
  const sides = names.map((name, side) => element("div", {}, element("div", {class: "name"}, name),
    element("div", {class: "text"}, ...marked[side])));
  return folded(heading, element("div", {class: "two"}, ...sides), Math.max(...texts.map((text) => text.length)) / 2);
};

/** The verdict of each wording in each order, with its probability and the wording's text.
 * @param {Row} row @param {string[]} wordings @param {Texts} asked
 * @param {string} heading of the first column */
const verdictTable = (row, wordings, asked, heading) => {
  const texts = wordings.some((name) => asked[name]), several = row.answers.length > 1;
  const head = element("tr", {}, element("th", {}, heading), ...row.answers.map((each) => element("th", {scope: "col"},
    several ? `order ${each.order}` : "verdict")), ...(texts ? [element("th", {scope: "col"}, "its text")] : []));
  const lines = wordings.map((name) => element("tr", {}, element("th", {scope: "row"}, name),
    ...row.answers.map((each) => {
      const verdict = each.verdicts[name], off = each.label !== null && verdict !== each.label, share = each.shares[name];
      return element("td", off ? {class: "off"} : {}, verdict === undefined ? "–" : off ? `✗ ${verdict}` : verdict,
        ...(share === undefined ? [] : [element("small", {}, ` ${Math.round(100 * share)}%`)]));
    }), ...(texts ? [element("td", {class: "asked"}, asked[name] || "")] : [])));
  return element("table", {class: "wordings"}, element("thead", {}, head), element("tbody", {}, ...lines));
};

/** The facts on an item in a line. @param {Row} row */
const facts = (row) => {
  const [first] = row.answers, label = ofItem(row, first, first.label);
  const margins = row.answers.filter((each) => each.margin !== null).map((each) => (each.margin || 0).toFixed(2));
  const verdict = row.case.labels && row.answers.length > 1 ? said(row) : `verdict ${said(row)}`;
  return [label === null ? "" : `label ${label}`, verdict, margins.length ? `margin ${margins.join(" and ")}` : "",
    ...Object.entries(first.people).map(([name, given]) => `${name}: ${given}`)].filter(Boolean);
};

/** Fill the panel of an item. @param {HTMLElement} panel @param {Row} row @param {string[]} kinds
 * @param {Texts} asked the wordings' texts @param {string} [what] the heading of its verdicts */
const showItem = (panel, row, kinds, asked, what) => {
  const wordings = [...new Set(row.answers.flatMap((each) => Object.keys(each.verdicts)))];
  if (!what) wordings.sort((one, two) => one.localeCompare(two, undefined, {numeric: true}));
  panel.append(element("h3", {}, `Item ${row.item.id}`),
    element("p", {class: "note"}, [row.case.name, kinds.join(", ")].filter(Boolean).join(" · ")),
    element("p", {class: "facts"}, facts(row).join(" · ")));
  if (wordings.length > 1 || Object.keys(row.answers[0].shares).length) {
    panel.append(folded(what || (wordings.length > 1 ? "Verdict of each wording" : "Verdict"),
      verdictTable(row, wordings, asked, what ? "when" : "wording"), 0));
    if (row.case.labels && row.answers.length > 1) panel.append(element("p", {class: "note"}, "In each order, a verdict names the option as shown."));
  }
  const done = new Set();
  const split = row.answers.find((each) => new Set(Object.values(each.verdicts)).size > 1);
  if (split) {
    const two = [wordings[0], wordings.find((name) => split.verdicts[name] !== split.verdicts[wordings[0]]) || ""];
    const names = two.map((name) => `${name}: ${split.verdicts[name]}`);
    if (two.every((name) => asked[name])) panel.append(pair("Two wordings with other verdicts", names, two.map((name) => asked[name])));
    if (two.every((name) => split.answers[name])) {
      two.forEach((name) => done.add(split.answers[name]));
      panel.append(pair("The judge’s two answers", names, two.map((name) => split.answers[name])));
    }
  }
  const texts = Object.entries(row.item.texts), used = new Set();
  texts.forEach(([name, text]) => {
    if (used.has(name)) return;
    const next = name.replace(/(1|a|A|before)$/, (last) => ({1: "2", a: "b", A: "B", before: "after"}[last] || last));
    if (next !== name && row.item.texts[next] && text.length + row.item.texts[next].length > 60) {
      used.add(next);
      panel.append(pair(`${name} and ${next}`, [name, next], [text, row.item.texts[next]]));
    } else if (text.length <= 60 && texts.length > 1) panel.append(element("p", {class: "facts"}, element("small", {}, `${name} `), text));
    else panel.append(foldedText(name, text, texts.length === 1 ? true : undefined));
  });
  row.answers.forEach((each) => Object.entries(each.answers).filter(([, text]) => !done.has(text)).forEach(([name, text]) => {
    const where = [wordings.length > 1 ? ` under ${name}` : "", row.answers.length > 1 ? ` in order ${each.order}` : ""].join("");
    panel.append(foldedText(where ? `The judge${where}` : "The judge’s answer", text));
  }));
};

/** An item as plain text, for a chat. @param {Row} row */
const itemText = (row) => [`Item ${row.item.id}: ${facts(row).join(", ")} (${row.case.name})`,
  ...Object.entries(row.item.texts).map(([name, text]) => `${name}: ${text}`),
  ...row.answers.flatMap((each) => Object.entries(each.answers).map(([name, text]) => `The judge (${name}): ${text}`)),
].join("\n\n");
