/* The table in the browser: sorting, columns, the judges to compare and the names on the chart.
   All of it is in the page's address. The content of the table is replaced when a filter changes. */
(() => {
const element = document.getElementById('table');
const query = () => new URLSearchParams(location.search);
let known = location.search;
const remember = (changed, replace) => {
  const text = changed.toString();
  const address = location.pathname + (text ? '?' + text : '');
  if (text === query().toString()) return;
  history[replace ? 'replaceState' : 'pushState'](history.state, '', address);
  known = location.search;
  links();
};
let asked = 0;
const load = async () => {
  const mine = ++asked;
  const answer = await fetch('table.html' + location.search).catch(() => null);
  const text = answer && answer.ok ? await answer.text() : null;
  if (mine !== asked) return;
  if (text !== null) {
    element.innerHTML = text;
    apply();
    return;
  }
  const said = document.createElement('p');
  said.className = 'notice';
  said.setAttribute('role', 'alert');
  said.textContent = 'The server does not answer. Reload the page.';
  element.querySelector('.site').prepend(said);
};
const filter = (changed, replace) => {
  const before = location.search;
  remember(changed, replace);
  if (location.search !== before) load();
};
window.judgesense = {filter};
window.addEventListener('popstate', () => {
  if (location.search !== known) location.reload();
});
const change = (name, value, replace) => {
  const changed = query();
  if (value) changed.set(name, value); else changed.delete(name);
  remember(changed, replace);
};
const listed = name => (query().get(name) || '').split(' ').filter(Boolean);

const value = (row, column) => {
  const cell = row.children[column];
  const text = cell && cell.dataset.v;
  if (text === undefined || text === '') return null;
  return cell.dataset.kind === 'text' ? text : Number(text);
};
const sort = () => {
  const [key, way] = (query().get('sort') || '').split('.');
  const heads = [...element.querySelectorAll('.board thead th')];
  const column = heads.findIndex(head => head.dataset.key === key);
  if (column < 0) return;
  const down = way === 'down';
  heads.forEach((head, at) => head.setAttribute('aria-sort',
    at !== column ? 'none' : down ? 'descending' : 'ascending'));
  element.querySelectorAll('.board tbody').forEach(body => {
    const rows = [...body.querySelectorAll('tr[data-row]')];
    const last = [...body.querySelectorAll('tr.baseline')];
    rows.sort((one, two) => {
      const a = value(one, column), b = value(two, column);
      if (a === null || b === null) return (a === null) - (b === null);
      const order = typeof a === 'string' ? a.localeCompare(b) : a - b;
      return down ? -order : order;
    });
    rows.concat(last).forEach(row => body.append(row));
  });
};
const columns = () => {
  const shown = listed('columns');
  const board = element.querySelector('.board');
  if (!board) return;
  board.dataset.show = shown.join(' ');
  element.querySelectorAll('.picker input').forEach(box => {
    box.checked = shown.includes(box.value);
  });
  const hidden = element.querySelectorAll('.picker input:not(:checked)').length;
  element.querySelectorAll('.group th, .empty td').forEach(cell => {
    cell.colSpan = board.tHead.rows[0].cells.length - hidden;
  });
};
/* A judge's key is in the link of its row. */
const keyOf = box => {
  const asked = new URL(box.parentNode.querySelector('a').href).searchParams;
  return `${asked.get('run')}|${asked.get('judge')}`;
};
const picks = () => query().getAll('compare').slice(-2);
const compare = () => {
  const now = picks();
  element.querySelectorAll('.pick').forEach(box => { box.checked = now.includes(keyOf(box)); });
  const bar = element.querySelector('.comparing');
  if (!bar) return;
  bar.hidden = now.length === 0;
  const names = now.map(key => key.slice(key.indexOf('|') + 1).split('@')[0]);
  bar.querySelector('span').textContent = names.join(' and ')
    + (now.length === 1 ? ': choose a second judge' : '');
  const link = bar.querySelector('a');
  link.hidden = now.length < 2;
  if (now.length === 2) link.href = 'compare?' + new URLSearchParams({a: now[0], b: now[1]});
};
const links = () => {
  const csv = element.querySelector('.csv'), whole = element.querySelector('.whole');
  if (csv) csv.href = 'table.csv' + location.search;
  if (whole) {
    const all = query();
    all.set('rows', 'all');
    whole.href = location.pathname + '?' + all;
  }
};
/* A name goes where it hides no other name and no judge, and if it can, where no interval crosses
   it. One that fits nowhere shows on hover only. */
const place = () => {
  const svg = element.querySelector('.chart svg');
  if (!svg) return;
  const room = svg.getBoundingClientRect();
  const boxes = what => [...svg.querySelectorAll(what)].map(each => each.getBoundingClientRect());
  const taken = boxes('circle, .soft'), lines = boxes('.error');
  const free = (box, all) => box.left >= room.left && box.right <= room.right && box.top >= room.top - 6
    && !all.some(each => box.left < each.right && each.left < box.right
      && box.top < each.bottom && each.top < box.bottom);
  const ways = [['8', '-8', 'start'], ['10', '4', 'start'], ['-8', '-8', 'end'], ['8', '18', 'start'],
    ['-8', '18', 'end'], ['-10', '4', 'end']];
  svg.querySelectorAll('.named').forEach(text => {
    text.classList.remove('hover');
    const fits = all => ways.some(([dx, dy, anchor]) => {
      text.setAttribute('dx', dx);
      text.setAttribute('dy', dy);
      text.setAttribute('text-anchor', anchor);
      return free(text.getBoundingClientRect(), all);
    });
    if (fits([...taken, ...lines]) || fits(taken)) taken.push(text.getBoundingClientRect());
    else text.classList.add('hover');
  });
};
const showAll = () => {
  const all = query();
  all.set('rows', 'all');
  filter(all);
};
const apply = () => { columns(); sort(); compare(); links(); place(); };

element.addEventListener('click', event => {
  const heading = event.target.closest('.board thead button');
  if (heading) {
    const head = heading.closest('th');
    const first = head.dataset.first === 'down' ? 'down' : 'up';
    const [key, way] = (query().get('sort') || '').split('.');
    const turned = way === 'down' ? 'up' : 'down';
    change('sort', `${head.dataset.key}.${key === head.dataset.key ? turned : first}`);
    const whole = element.querySelector('.whole');
    if (whole) showAll();
    else sort();
  }
  if (event.target.closest('.whole')) {
    event.preventDefault();
    showAll();
  }
  if (event.target.closest('.comparing button')) {
    change('compare', '', true);
    compare();
  }
  const copy = event.target.closest('.copy');
  if (copy) {
    const said = text => {
      copy.textContent = text;
      setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
    };
    const text = copy.parentNode.querySelector('pre');
    navigator.clipboard.writeText(text.textContent).then(() => said('Copied'), () => {
      getSelection().selectAllChildren(text);
      said('Selected');
    });
  }
});
element.addEventListener('change', event => {
  if (event.target.matches('.picker input')) {
    const shown = [...element.querySelectorAll('.picker input:checked')].map(box => box.value);
    change('columns', shown.join(' '));
    columns();
  }
  if (event.target.matches('.pick')) {
    const changed = query();
    const rest = picks().filter(key => key !== keyOf(event.target));
    changed.delete('compare');
    const now = event.target.checked ? [...rest, keyOf(event.target)].slice(-2) : rest;
    now.forEach(key => changed.append('compare', key));
    remember(changed, true);
    compare();
  }
});
window.addEventListener('resize', place);
apply();
/* Gradio draws the navigation, the filters and the places for the heading and the table. */
const settle = () => {
  const parts = [['hero-place', 'hero'], ['table-place', 'table']].map(names =>
    names.map(name => document.getElementById(name)));
  if (!parts.every(([place]) => place)) return;
  drawn.disconnect();
  parts.forEach(([place, part]) => {
    // The newer way to move keeps the focus.
    if (place.moveBefore) place.moveBefore(part, null); else place.append(part);
  });
  document.getElementById('first').remove();
};
const drawn = new MutationObserver(settle);
drawn.observe(document.body, {childList: true, subtree: true});
})();
