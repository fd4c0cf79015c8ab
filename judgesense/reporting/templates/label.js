"use strict";
/* One item at a time: a label is saved before the next item shows. */

/**
 * @typedef {{secret: string, labels: string[], file: string, source: string, rubric: string}} Known
 * @typedef {{done: number, total: number, at: number | null, item: Record<string, string> | null, label: string | null,
 *   comment: string, goal: [number, number] | null}} State
 */
(() => {
/** @type {Known} */
const known = JSON.parse(document.getElementById('known')?.textContent || '');
/** @type {<T extends HTMLElement = HTMLElement>(what: string) => T} */
const get = what => /** @type {any} */ (document.querySelector(what));
const [fields, answer, alert, done] = ['.fields', '.answer', '[role=alert]', '.done'].map(what => get(what));
const comment = /** @type {HTMLTextAreaElement} */ (get('textarea')), named = /** @type {HTMLInputElement} */ (get('#name'));
const disabled = (/** @type {string} */ what, /** @type {boolean} */ off) => { /** @type {HTMLButtonElement} */ (get(what)).disabled = off; };
let name = localStorage.getItem('judgesense-name') || '';
/** @type {State | null} */
let now = null;
/** @type {{what: string, done: Promise<void>} | null} */
let busy = null;
/* Labels that are digits have their own keys; others 1 to 9, then 0. */
const own = known.labels.every(label => /^\d$/.test(label));
const keys = known.labels.map((label, n) => own ? label : String((n + 1) % 10));
const buttons = known.labels.map((label, n) => {
  const button = element('button', {type: 'button', 'aria-pressed': 'false', 'aria-keyshortcuts': keys[n]},
    ...(own ? [] : [element('kbd', {'aria-hidden': 'true'}, keys[n])]), label);
  button.addEventListener('click', () => give(label));
  return button;
});
get('.choices').append(...buttons);
const help = /** @type {HTMLDialogElement} */ (get('dialog'));
get('.keys').append(...known.labels.map((label, n) => element('p', {}, element('kbd', {}, keys[n]), label)));
get('.many').textContent = 'More labels give a narrower interval for the share of verdicts that are right. The goal is a 95% '
  + 'interval for a share near 50%; for one near 0% or 100% it is narrower. You can stop at any time: every label is saved.';
if (known.rubric) {
  get('.rubric').append(element('details', {open: ''}, element('summary', {}, 'What the labels mean'),
    element('p', {tabindex: '0', role: 'region', 'aria-label': 'Rubric'}, known.rubric)));
}

/* A key pressed while a label is being saved is for an item that nobody has seen: it is left out.
   A comment is saved first, then what follows it. */
const ask = async (/** @type {string} */ what, /** @type {Partial<State>} */ more = {}) => {
  if (busy && busy.what !== 'comment') return;
  while (busy) await busy.done;
  busy = {what, done: send(what, more)};
  await busy.done;
};
const send = async (/** @type {string} */ what, /** @type {Partial<State>} */ more) => {
  try {
    const reply = await fetch('/', {method: 'POST', headers: {'X-Secret': known.secret},
      body: JSON.stringify({do: what, name, ...more})});
    const found = await reply.json();
    alert.textContent = found.error || '';
    busy = null;
    if (!found.error) show(found);
  } catch {
    busy = null;
    alert.textContent = 'Not saved: the server has stopped. Run judgesense label again, then reload this page. Earlier labels are safe.';
  }
};
const show = (/** @type {State} */ state) => {
  if (state.total === undefined) return;
  now = state;
  const item = state.item || {}, ready = state.at === null;
  fields.replaceChildren();
  done.hidden = !ready;
  answer.hidden = ready;
  get('.who').textContent = name;
  const [more, points] = state.goal || [];
  get('.count').textContent = `${state.done} of ${state.total} labelled${more ? ` · ${more} more for about ±${points} points` : ''}`;
  /** @type {HTMLProgressElement} */ (get('progress')).value = state.total ? state.done / state.total : 0;
  if (ready) {
    get('.all').textContent = `All ${state.total} items are labelled. Your labels are in ${known.file}.`;
    get('.stop').focus();
    return;
  }
  const entries = Object.entries(item), used = new Set();
  if (!entries.length) fields.append(element('p', {class: 'hint'}, `${known.source} has no text of this item.`));
  const field = (/** @type {string[]} */ [title, text]) => element('section', {class: 'field'}, element('h2', {}, title), element('p', {}, text));
  entries.forEach(([title, text]) => {
    if (used.has(title)) return;
    // Two answers to compare lie beside each other.
    const next = title.replace(/(1|a|A)$/, last => ({1: '2', a: 'b', A: 'B'}[last] || last));
    if (next !== title && item[next] !== undefined) {
      used.add(next);
      fields.append(element('div', {class: 'pair'}, field([title, text]), field([next, item[next]])));
    } else fields.append(field([title, text]));
  });
  buttons.forEach((button, n) => button.setAttribute('aria-pressed', String(known.labels[n] === state.label)));
  comment.value = state.comment;
  disabled('.back', state.at === 0);
  disabled('.on', (state.at || 0) + 1 >= state.total);
  fields.style.paddingBottom = `${answer.offsetHeight + 16}px`;
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  window.scrollTo(0, 0);
};
const give = (/** @type {string} */ label) => ask('label', {at: now?.at, label, comment: comment.value});
const go = async (/** @type {number} */ step) => {
  await keep();
  const at = (now?.at ?? 0) + step;
  if (now && at >= 0 && at < now.total) ask('show', {at});
};
const keep = async () => {
  if (now && now.at !== null && comment.value !== now.comment) await ask('comment', {at: now.at, comment: comment.value});
};
get('.back').addEventListener('click', () => go(-1));
get('.on').addEventListener('click', () => go(1));
document.querySelectorAll('.undo').forEach(button => button.addEventListener('click', () => ask('undo')));
get('.stop').addEventListener('click', async () => {
  await ask('stop');
  done.replaceChildren(element('p', {}, `The server has stopped. Your labels are in ${known.file}.`));
});
comment.addEventListener('keydown', event => {
  if (event.key === 'Escape' || (event.key === 'Enter' && !event.shiftKey)) {
    event.preventDefault();
    comment.blur();
    keep();
  }
});
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || help.open) return;
  if (['TEXTAREA', 'INPUT'].includes(/** @type {HTMLElement} */ (event.target).tagName)) return;
  if (event.key === '?') help.showModal();
  if (!now || event.key === '?') return;
  const place = now.at === null ? -1 : keys.indexOf(event.key);
  if (place >= 0) give(known.labels[place]);
  else if (event.key === 'u') ask('undo');
  else if (now.at === null) return;
  else if (event.key === 'c') comment.focus();
  else if (event.key === 'ArrowLeft') go(-1);
  else if (event.key === 'ArrowRight') go(1);
  else return;
  event.preventDefault();
});
const form = get('form.name');
form.addEventListener('submit', event => {
  event.preventDefault();
  name = named.value.trim();
  if (!name) return;
  localStorage.setItem('judgesense-name', name);
  form.hidden = true;
  ask('show');
});
const helper = element('button', {type: 'button', 'aria-label': 'Help', title: 'Help (?)'}, '?');
helper.addEventListener('click', () => help.showModal());
const who = element('button', {type: 'button', class: 'wide', title: 'Label under another name'}, 'another name');
who.addEventListener('click', () => {
  fields.replaceChildren();
  answer.hidden = done.hidden = true;
  now = null;
  form.hidden = false;
  named.value = '';
  named.focus();
});
get('.count').after(who, helper);
if (name) ask('show'); else { form.hidden = false; named.focus(); }
})();
