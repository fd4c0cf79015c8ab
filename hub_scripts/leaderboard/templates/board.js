/* The board in the browser: filters, order, chart, comparison and CSV, from the rows in the page.
   What is shown is in the address (after #), so that a link shows what its sender saw. */
(() => {
const rows = JSON.parse(document.getElementById('rows').textContent);
const form = document.querySelector('form');
const table = document.querySelector('.board');
const lines = [...table.querySelectorAll('tr[data-n]')];
const rowOf = line => rows[line.dataset.n];
const short = row => row.judge.split('@')[0] || row.judge;
/* As the table does: never 0% or 100% unless it is exactly that. */
const percent = share => {
  if (share === null) return '–';
  if (share > 0 && share < .0005) return '<0.1%';
  if (share > .9995 && share < 1) return '>99.9%';
  return `${(100 * share).toFixed((share > 0 && share < .01) || (share > .99 && share < 1) ? 1 : 0)}%`;
};
const interval = (low, high) => low === null || high === null ? '' : ` [${percent(low)}, ${percent(high)}]`;
const element = (name, attributes = {}, ...content) => {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...content);
  return made;
};

const state = () => new URLSearchParams(location.hash.slice(1));
const remember = (changes, replace) => {
  const now = state();
  Object.entries(changes).forEach(([name, value]) => {
    now.delete(name);
    [value].flat().filter(Boolean).forEach(each => now.append(name, each));
  });
  if (replace) location.replace(`#${now}`); else location.hash = now;
};
const task = () => {
  const named = state().get('task');
  return rows.some(row => row.task === named) ? named : form.dataset.first;
};
const matches = row => row.task === task()
  && row.judge.toLowerCase().includes((state().get('find') || '').trim().toLowerCase())
  && ['kind', 'trust'].every(key => [null, '', row[key]].includes(state().get(key)));

const value = (row, key) => key === 'trust'
  ? ['use', 'care', 'unknown', 'avoid'].indexOf(row.trust) : row[key];
const sort = () => {
  const [key, way] = (state().get('sort') || '').split('.');
  const sign = way === 'down' ? -1 : 1;
  table.querySelectorAll('thead th').forEach(head => head.setAttribute('aria-sort',
    head.dataset.key !== key ? 'none' : sign < 0 ? 'descending' : 'ascending'));
  const order = (one, two) => {
    const [a, b] = [rowOf(one), rowOf(two)];
    const [x, y] = key ? [value(a, key), value(b, key)] : [+one.dataset.n, +two.dataset.n];
    if (x == null || y == null) return (x == null) - (y == null);
    return sign * (typeof x === 'string' ? x.localeCompare(y) : x - y);
  };
  for (const body of table.tBodies) {
    if (!body.classList.contains('shown')) continue;
    const now = [...body.querySelectorAll('tr[data-n]')], sorted = [...now].sort(order);
    if (sorted.some((line, at) => line !== now[at])) body.append(...sorted);
  }
};

/* Each judge by how much more often it is right than a constant answer, and how steady it is. */
const chart = shown => {
  const figure = document.querySelector('.chart'), svg = figure.querySelector('svg');
  /* Judges of other data are not comparable: only the first data that has points is drawn. */
  const known = shown.filter(row => row.beats_constant !== null && row.jss !== null);
  const points = known.filter(row => ['data', 'pairs'].every(key => row[key] === known[0][key]));
  figure.hidden = points.length < 2;
  svg.replaceChildren();
  if (figure.hidden) return;
  figure.querySelector('.of-data').textContent = ` Data: ${points[0].data}.`;
  const after = row => row.change && Math.hypot(row.change.gain, row.change.jss_gain) > .02
    ? [row.beats_constant + row.change.gain, row.jss + row.change.jss_gain] : null;
  const draw = (name, attributes, parent = svg, text = '') => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    Object.entries(attributes).forEach(([key, at]) => made.setAttribute(key, at));
    made.textContent = text;
    parent.append(made);
    return made;
  };
  const step = .2, clamp = (low, at, high) => Math.min(Math.max(at, low), high);
  const all = points.flatMap(row => [row.beats_constant, ...(after(row) || []).slice(0, 1)]);
  const first = step * Math.floor(Math.min(-step, ...all) / step + 1e-9);
  const last = step * Math.ceil(Math.max(step, ...all) / step - 1e-9);
  const least = Math.min(.6, ...points.map(row => row.ci_low ?? row.jss));
  const lowest = Math.max(0, step * Math.floor(least / step + 1e-9));
  const x = at => `${1 + 97 * (clamp(first, at, last) - first) / (last - first)}%`;
  const y = at => `${91 - 82 * (clamp(lowest, at, 1) - lowest) / (1 - lowest)}%`;
  const ticks = (from, to) => Array.from({length: Math.round((to - from) / step) + 1}, (_, n) => from + step * n);
  const size = (from, to, scale) => `${Math.abs(parseFloat(scale(to)) - parseFloat(scale(from)))}%`;
  draw('path', {d: 'M0 0 8 4 0 8Z'}, draw('marker', {id: 'head', viewBox: '0 0 8 8', refX: 8, refY: 4,
    markerWidth: 7, markerHeight: 7, orient: 'auto'}));
  draw('rect', {class: 'zone', x: x(0), y: y(1), width: size(0, last, x), height: size(.8, 1, y)});
  ticks(first, last).forEach(at => {
    const points = Math.round(100 * at);
    draw('line', {class: points ? 'grid' : 'limit', x1: x(at), x2: x(at), y1: y(1), y2: y(lowest)});
    const anchor = at === first ? 'start' : points === Math.round(100 * last) ? 'end' : 'middle';
    draw('text', {class: 'soft', x: x(at), y: '91%', dy: 14, 'text-anchor': anchor}, svg,
      points > 0 ? `+${points}` : `${points}`.replace('-', '−'));
  });
  ticks(lowest, 1).forEach(at => {
    draw('line', {class: 'grid', x1: x(first), x2: x(last), y1: y(at), y2: y(at)});
    draw('text', {class: 'soft', x: x(first), y: y(at), dx: 3, dy: -3}, svg,
      percent(at) + (at > .99 ? ' same verdict after rewording' : ''));
  });
  draw('text', {class: 'soft', x: '98%', y: '91%', dx: -6, dy: -6, 'text-anchor': 'end'}, svg,
    'accuracy, in points above a constant answer →');
  const named = points.length <= 40;
  const names = points.map(row => {
    const at = {x: x(row.beats_constant), y: y(row.jss)};
    const link = draw('a', {class: row.trust, href: row.page, tabindex: -1});
    draw('title', {}, link, `${row.judge}, ${row.scoring}: ${row.trust}`);
    if (named && row.beats_constant_ci_low !== null) draw('line', {class: 'error', x1: x(row.beats_constant_ci_low),
      x2: x(row.beats_constant_ci_high), y1: at.y, y2: at.y}, link);
    if (named && row.ci_low !== null) draw('line', {class: 'error', x1: at.x, x2: at.x, y1: y(row.ci_low), y2: y(row.ci_high)}, link);
    if (after(row)) draw('line', {class: 'arrow', 'marker-end': 'url(#head)', x1: at.x, y1: at.y,
      x2: x(after(row)[0]), y2: y(after(row)[1])}, link);
    draw('circle', {class: row.fair === 'fail' ? 'hollow' : 'dot', cx: at.x, cy: at.y, r: 6}, link);
    return draw('text', {class: 'named', ...at}, link, short(row).slice(0, 48));
  });
  place(svg, names, named);
};
/* A name goes where it hides no other name, no judge and, if it can, no interval; one that fits
   nowhere shows on hover only. */
const place = (svg, names, named) => {
  const room = svg.getBoundingClientRect();
  const boxes = what => [...svg.querySelectorAll(what)].map(each => each.getBoundingClientRect());
  const taken = boxes('circle, .soft'), errors = boxes('.error');
  const free = (box, all) => box.left >= room.left && box.right <= room.right && box.top >= room.top - 6
    && !all.some(each => box.left < each.right && each.left < box.right
      && box.top < each.bottom && each.top < box.bottom);
  const ways = [[8, -8, 'start'], [10, 4, 'start'], [-8, -8, 'end'], [8, 18, 'start'], [-8, 18, 'end'], [-10, 4, 'end']];
  names.forEach(name => {
    const fits = all => ways.some(([dx, dy, anchor]) => {
      Object.entries({dx, dy, 'text-anchor': anchor}).forEach(([key, at]) => name.setAttribute(key, at));
      return free(name.getBoundingClientRect(), all);
    });
    if (named && (fits([...taken, ...errors]) || fits(taken))) taken.push(name.getBoundingClientRect());
    else name.classList.add('hover');
  });
};

const picked = () => state().getAll('compare').slice(-2);
const compare = () => {
  const keys = picked(), section = document.querySelector('.comparison');
  lines.forEach(line => {
    const box = line.querySelector('.pick');
    if (box) box.checked = keys.includes(rowOf(line).page);
  });
  section.hidden = !keys.length;
  section.replaceChildren();
  const judges = keys.map(key => rows.filter(row => row.page === key)).filter(own => own.length);
  if (!judges.length) { section.hidden = true; return; }
  const clear = element('button', {type: 'button'}, 'Clear');
  clear.addEventListener('click', () => remember({compare: []}));
  section.append(element('h2', {}, judges.map(own => short(own[0])).join(' and ')), clear);
  if (judges.length < 2) { section.append(element('p', {}, 'Choose a second judge.')); return; }
  const heads = ['task', 'judge', 'usable', 'same verdict after rewording', 'right', 'same in both orders', 'which is steadier'];
  const both = judges[0].flatMap(one => {
    const two = judges[1].find(row => ['task', 'scoring', 'pairs'].every(key => row[key] === one[key]));
    return two ? [[one, two]] : [];
  });
  const body = element('tbody');
  both.forEach(pair => {
    const steadier = pair.find((row, at) => row.ci_low !== null && pair[1 - at].ci_high !== null
      && row.ci_low > pair[1 - at].ci_high);
    pair.forEach((row, at) => {
      const cells = [`${row.task}, ${row.scoring}`, short(row), element('span', {class: `trust ${row.trust}`}, row.trust),
        percent(row.jss) + interval(row.ci_low, row.ci_high),
        percent(row.accuracy) + interval(row.accuracy_ci_low, row.accuracy_ci_high), percent(row.position_consistency),
        at ? '' : steadier ? `${short(steadier)} is steadier` : 'the intervals overlap'];
      body.append(element('tr', {class: row.trust},
        ...cells.map((each, n) => element('td', each ? {'data-name': heads[n]} : {}, each))));
    });
  });
  if (both.length) {
    section.append(element('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': 'Figures of both, scrollable'},
      element('table', {class: 'figures stacked'}, element('thead', {},
        element('tr', {}, ...heads.map(head => element('th', {scope: 'col'}, head)))), body)));
  } else section.append(element('p', {}, 'These judges have no results on the same pairs with the same scoring.'));
  section.append(element('p', {class: 'note'}, 'Overlapping intervals do not show that two judges are alike. '
    + 'A paired test on the same prompts can detect smaller differences: '), element('pre', {tabindex: 0, 'aria-label': 'Command'},
    `judgesense compare ${judges.map(own => own[0].run).join(' ')}`));
};

/* A text that a spreadsheet would run as a formula gets an apostrophe in front. */
const cell = each => {
  const text = each === null ? '' : typeof each === 'object' ? JSON.stringify(each)
    : typeof each === 'string' ? each.replace(/^[=+\-@\t\r\n]/, "'$&") : String(each);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = () => {
  const shown = rows.filter(matches);
  const text = [Object.keys(rows[0] || {}), ...shown.map(row => Object.values(row))]
    .map(line => `${line.map(cell).join(',')}\n`).join('');
  const link = element('a', {download: `judgesense-${task()}.csv`,
    href: URL.createObjectURL(new Blob([text], {type: 'text/csv'}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const apply = () => {
  const now = state();
  form.elements.task.value = task();
  for (const name of ['find', 'kind', 'trust']) {
    const control = form.elements[name];
    if (document.activeElement !== control || control.value.trim() !== (now.get(name) || '').trim()) {
      control.value = now.get(name) || '';
    }
  }
  const shown = [];
  for (const body of table.tBodies) {
    let judges = 0;
    if (body.dataset.task === task()) body.querySelectorAll('tr[data-n]').forEach(line => {
      const row = rowOf(line), fits = matches(row);
      line.hidden = !fits;
      if (fits) { judges += 1; shown.push(row); }
    });
    body.classList.toggle('shown', judges > 0 || !rows.length);
  }
  document.querySelectorAll('.answer').forEach(line => line.classList.toggle('shown', line.dataset.task === task()));
  document.querySelector('.of-task').textContent = rows.length ? ` on ${task()}` : '';
  document.querySelector('.count').textContent = `${shown.length} row${shown.length === 1 ? '' : 's'}`;
  document.querySelector('.nobody').hidden = shown.length > 0 || !rows.length;
  sort();
  chart(shown);
  compare();
};

table.querySelectorAll('thead th').forEach(head => {
  const button = element('button', {type: 'button'}, ...head.childNodes);
  head.append(button);
  button.addEventListener('click', () => {
    const [key, way] = (state().get('sort') || '').split('.');
    const next = key === head.dataset.key ? (way === 'down' ? 'up' : 'down') : head.dataset.first;
    remember({sort: `${head.dataset.key}.${next}`});
  });
});
form.addEventListener('submit', event => event.preventDefault());
form.addEventListener('input', event => remember({[event.target.name]: event.target.value}, event.target.name === 'find'));
table.addEventListener('change', event => {
  const key = rowOf(event.target.closest('tr')).page;
  const others = picked().filter(each => each !== key);
  remember({compare: event.target.checked ? [...others, key].slice(-2) : others}, true);
  if (event.target.checked && others.length) {
    setTimeout(() => document.querySelector('.comparison').scrollIntoView({block: 'nearest'}), 100);
  }
});
document.querySelector('.csv').addEventListener('click', csv);
window.addEventListener('hashchange', apply);
let waiting;
window.addEventListener('resize', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => chart(rows.filter(matches)), 100);
});
apply();
})();
