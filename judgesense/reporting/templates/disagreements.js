/* The list of disagreements: filters, search and keyboard over the rows in the page. Only the rows
   in sight are drawn, so that thousands scroll as a few do. */
(() => {
const source = document.getElementById('listed');
if (!source) return;
const data = JSON.parse(source.textContent);
const box = document.querySelector('.listed'), list = box.querySelector('.list');
const space = list.firstElementChild, detail = box.querySelector('.detail');
const find = box.querySelector('input'), choice = box.querySelector('select');
const count = box.querySelector('[role=status]');
const rows = data.rows.map(([kind, item, order, kinds, label, verdict, margin, verdicts, answers, people, texts], number) =>
  ({number, kind, item, order, kinds, label, verdict, margin, verdicts, answers, people, texts}));
const twins = new Map();
rows.forEach(row => {
  const key = `${row.kind}\n${row.item}`;
  twins.set(key, [...(twins.get(key) || []), row]);
});
const element = (name, attributes = {}, ...content) => {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...content);
  return made;
};
const points = margin => margin === null ? '' : margin.toFixed(2);
const words = row => row.words ??= [row.item, row.label, row.verdict, ...Object.values(row.people),
  ...Object.values(row.answers), ...Object.values(row.texts)].join('\n').toLowerCase();
const snippet = row => Object.values(row.answers)[0] || Object.values(row.texts)[0] || '';

let shown = rows, kinds = 0, at = -1;
const HEIGHT = 60, MORE = 8;
const line = (row, place) => {
  const made = element('div', {role: 'option', id: `listed-${place}`, class: 'entry', 'aria-selected': place === at,
    'aria-posinset': place + 1, 'aria-setsize': shown.length, style: `top:${place * HEIGHT}px`});
  made.dataset.at = place;
  made.append(element('b', {}, row.item + (row.order === '-' ? '' : ` ${row.order}`)),
    element('span', {class: 'said'}, row.verdict, ...(row.label === null ? [] : [element('small', {}, ` label ${row.label}`)])),
    element('span', {class: 'kinds'}, data.kinds.filter((_, n) => row.kinds >> n & 1).join(', ')),
    element('span', {class: 'snippet'}, snippet(row).slice(0, 160)));
  return made;
};
const draw = () => {
  const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - MORE);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + MORE);
  const lines = [];
  for (let place = first; place < last; place += 1) lines.push(line(shown[place], place));
  // What assistive technology follows stays in the page, in sight or not.
  if (at >= 0 && at < shown.length && (at < first || at >= last)) lines.push(line(shown[at], at));
  space.replaceChildren(...lines);
};
const apply = () => {
  const wanted = find.value.trim().toLowerCase(), kind = choice ? choice.value : '';
  const kept = shown[at];
  shown = rows.filter(row => (!kinds || row.kinds & kinds) && (kind === '' || row.kind === +kind)
    && (!wanted || words(row).includes(wanted)));
  space.style.height = `${shown.length * HEIGHT}px`;
  count.textContent = `${shown.length} of ${rows.length} shown`;
  list.scrollTop = 0;
  select(kept && shown.includes(kept) ? shown.indexOf(kept) : shown.length ? 0 : -1);
};
const select = place => {
  at = place;
  if (at >= 0) {
    const top = at * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    list.setAttribute('aria-activedescendant', `listed-${at}`);
  } else list.removeAttribute('aria-activedescendant');
  draw();
  open(shown[at]);
};

/* Two texts in pieces, each with whether the other lacks it: the longest common words stay. */
const differing = (one, two) => {
  const split = text => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  const [a, b] = [split(one), split(two)];
  let start = 0, end = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [x, y] = [a, b].map(each => each.slice(start, each.length - end));
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
    const pieces = [];
    all.forEach((word, n) => {
      const alike = n < start || n >= all.length - end || same[side].has(n);
      if (pieces.length && pieces.at(-1)[1] === alike) pieces.at(-1)[0] += word; else pieces.push([word, alike]);
    });
    return pieces.map(([text, alike]) => alike ? text : element('mark', {}, text));
  });
};
const FOLD = 400;
const folded = (name, body, size, unfold) =>
  element('details', unfold ?? size <= FOLD ? {open: ''} : {}, element('summary', {}, name), body);
const pair = (heading, names, texts) => {
  const marked = differing(...texts);
  const sides = names.map((name, side) => element('div', {}, element('div', {class: 'name'}, name),
    element('div', {class: 'text'}, ...marked[side])));
  return folded(heading, element('div', {class: 'two'}, ...sides), Math.max(...texts.map(text => text.length)) / 2);
};
const open = row => {
  detail.replaceChildren();
  if (!row) { detail.append(element('p', {class: 'note'}, 'No item fits.')); return; }
  const kind = data.cases[row.kind], wordings = Object.keys(row.verdicts);
  const twin = twins.get(`${row.kind}\n${row.item}`).find(each => each.order !== row.order);
  const facts = [`${row.label === null ? '' : `label ${row.label} · `}verdict ${row.verdict}`,
    row.margin === null ? '' : `margin ${points(row.margin)}`, twin ? `in order ${twin.order}: ${twin.verdict}` : '',
    ...Object.entries(row.people).map(([name, label]) => `${name}: ${label}`)].filter(Boolean);
  detail.append(element('h3', {}, `Item ${row.item}${row.order === '-' ? '' : `, order ${row.order}`}`),
    element('p', {class: 'note'}, `${kind.name} · ${data.kinds.filter((_, n) => row.kinds >> n & 1).join(', ')}`),
    element('p', {class: 'facts'}, facts.join(' · ')));
  if (wordings.length > 1) {
    const body = element('tbody', {}, ...wordings.map(name => element('tr', {}, element('th', {scope: 'row'}, name),
      element('td', row.label !== null && row.verdicts[name] !== row.label ? {class: 'off'} : {}, row.verdicts[name]))));
    detail.append(folded(data.what || 'Verdict of each wording', element('table', {class: 'wordings'}, body), 0));
  }
  const other = wordings.find(name => row.verdicts[name] !== row.verdicts[wordings[0]]);
  const both = other === undefined ? [] : [wordings[0], other];
  const asked = data.wordings[kind.task] || {};
  const done = new Set();
  if (both.length && both.every(name => asked[name])) {
    detail.append(pair('The two wordings', both.map(name => `${name}: ${row.verdicts[name]}`), both.map(name => asked[name])));
  }
  if (both.length && both.every(name => row.answers[name])) {
    both.forEach(name => done.add(name));
    detail.append(pair('The two answers of the judge', both.map(name => `${name}: ${row.verdicts[name]}`), both.map(name => row.answers[name])));
  }
  const texts = Object.entries(row.texts), used = new Set();
  texts.forEach(([name, text]) => {
    if (used.has(name)) return;
    const next = name.replace(/(1|a|A|before)$/, last => ({1: '2', a: 'b', A: 'B', before: 'after'}[last]));
    if (next !== name && row.texts[next] && text.length + row.texts[next].length > 60) {
      used.add(next);
      detail.append(pair(`${name} and ${next}`, [name, next], [text, row.texts[next]]));
    } else if (text.length <= 60 && texts.length > 1) detail.append(element('p', {class: 'facts'}, element('small', {}, `${name} `), text));
    else detail.append(folded(name, element('div', {class: 'text'}, text), text.length, texts.length === 1 ? true : undefined));
  });
  Object.entries(row.answers).filter(([name]) => !done.has(name)).slice(0, 4).forEach(([name, text]) => detail.append(
    folded(wordings.length > 1 ? `The judge under ${name}` : 'The judge’s reason', element('div', {class: 'text'}, text), text.length)));
  detail.scrollTop = 0;
};

let waiting = 0;
list.addEventListener('scroll', () => { waiting ||= requestAnimationFrame(() => { waiting = 0; draw(); }); });
list.addEventListener('click', event => {
  const chosen = event.target.closest('.entry');
  if (chosen) select(+chosen.dataset.at);
});
const buttons = box.querySelectorAll('.filters button');
buttons.forEach(button => button.addEventListener('click', () => {
  kinds = +button.value;
  buttons.forEach(each => each.setAttribute('aria-pressed', +each.value === kinds));
  apply();
}));
let typing;
find.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(apply, 80); });
if (choice) choice.addEventListener('change', apply);
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === find && ['Enter', 'Escape'].includes(event.key)) { list.focus(); return; }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const steps = {j: 1, k: -1, ...(event.target === list && {ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8,
    Home: -shown.length, End: shown.length})};
  if (event.key === '/') find.focus();
  else if (event.key in steps && shown.length) {
    select(Math.min(shown.length - 1, Math.max(0, at + steps[event.key])));
    box.scrollIntoView({block: 'nearest'});
  } else return;
  event.preventDefault();
});
box.hidden = false;
document.querySelector('.plain').hidden = true;
apply();
})();
