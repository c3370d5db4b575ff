// The frame that is chosen, with its answer or what it answers.

import {byId, el, say} from './dom.js';
import {at, size, took, visible} from './text.js';
import {label} from './timeline.js';
import {tree} from './tree.js';

const whole = new Map(); // bodies that the server was asked for, by their rows
const kept = 8;

export class Detail extends EventTarget {
  constructor(store) {
    super();
    this.store = store;
    this.node = byId('detail');
    this.show(0);
  }

  show(seq) {
    const row = this.store.row(seq);
    this.row = row;
    this.had = row && row.answer + '/' + row.marks?.length;
    document.body.classList.toggle('detailed', !!row);
    if (!row) {
      this.node.replaceChildren(el('div.hint', null, 'Choose a frame to see all of it: click one, or press ', el('kbd', null, 'j'), ' and ', el('kbd', null, 'k'), '.'));
      return;
    }
    const other = this.store.row(row.answer || row.asked || 0);
    this.node.replaceChildren(
      this.head(row),
      ...(row.marks || []).map((f) => finding(f)),
      this.body(row, row.marks),
      ...(other ? [this.other(row, other)] : row.type === 'request' ? [el('p.note', null, 'No answer so far.')] : []),
    );
    this.node.scrollTop = 0;
  }

  // refresh shows the frame again when more is known of it.
  refresh() {
    const row = this.row;
    if (row && this.had !== row.answer + '/' + row.marks?.length) {
      const top = this.node.scrollTop, focused = this.node.contains(document.activeElement);
      this.show(row.seq);
      this.node.scrollTop = top;
      if (focused) this.node.focus();
    }
  }

  head(row) {
    const facts = [];
    const fact = (name, value) => facts.push(el('div', null, el('dt', null, name), el('dd', null, value)));
    if (row.dir) fact('from', row.dir === '>' ? 'client → agent' : 'agent → client');
    fact('at', at(row.at || 0));
    if (row.id && row.type !== 'notification') fact('id', visible(row.id));
    if (row.session) fact('session', visible(row.session));
    if (row.took !== undefined) fact('answered after', took(row.took));
    if (row.size !== undefined) fact('size', size(row.size));
    return el('header.detail-head', null,
      el('button.back', {onclick: () => this.dispatchEvent(new Event('back')), 'aria-label': 'Back to the list'}, '‹'),
      el('h2', null, el('span.number', null, '#' + row.seq + ' '), visible(row.update ? row.method + ' ' + row.update : label(row)), el('span.type', null, typeName(row))),
      row.body ? el('button', {onclick: () => this.copy(), 'aria-keyshortcuts': 'c', title: 'Copy the frame (c)'}, 'Copy') : null,
      el('dl.facts', null, ...facts));
  }

  body(row, marks) {
    if (row.body === undefined) return el('p.said', null, visible(row.summary || 'Nothing is told about it.'));
    const text = whole.get(row.seq) ?? row.body;
    const partial = row.cut && !whole.has(row.seq);
    const isJSON = row.type !== 'stderr' && row.type !== 'text' && !partial && !row.short;
    const box = el('div.body', null, isJSON ? tree(text, (marks || []).filter((f) => f.seq === row.seq && f.path).map((f) => f.path)) : el('pre.plain', null, visible(text)));
    if (partial) {
      box.prepend(el('p.note', null, 'The first 64 kB of ' + size(row.size) + '. ', el('button', {onclick: (e) => this.load(row, e.target)}, 'Load all')));
    } else if (row.short) box.prepend(el('p.note', null, size(row.size) + ' passed; this much was recorded.'));
    return box;
  }

  other(row, other) {
    const title = row.answer ? 'Answer' : 'Request';
    return el('section.other' + (other.type === 'error' ? '.bad' : ''), {'aria-label': title},
      el('header', null, el('h3', null, title + ' ', el('span.number', null, '#' + other.seq)),
        row.answer ? el('span.fact', null, 'after ' + took(other.took)) : null,
        el('button', {onclick: () => this.dispatchEvent(new CustomEvent('go', {detail: other.seq})), 'aria-keyshortcuts': 'a', title: 'Go there (a)'}, 'Go to it')),
      this.body(other, other.marks));
  }

  async load(row, button) {
    button.disabled = true;
    try {
      const answer = await fetch('/frame?seq=' + row.seq);
      if (!answer.ok) throw new Error(answer.status === 404 ? 'The server has forgotten it; the recording has it.' : 'The server answered ' + answer.status + '.');
      whole.set(row.seq, await answer.text());
      if (whole.size > kept) whole.delete(whole.keys().next().value);
      if (this.row?.seq === row.seq || this.row?.answer === row.seq || this.row?.asked === row.seq) this.show(this.row.seq);
    } catch (e) {
      button.replaceWith(e instanceof TypeError ? 'acp is gone; the recording has it.' : e.message);
    }
  }

  async copy() {
    const row = this.row;
    if (!row || row.body === undefined) return;
    try {
      await navigator.clipboard.writeText(whole.get(row.seq) ?? row.body);
      say(row.cut && !whole.has(row.seq) ? 'Copied the first 64 kB' : 'Copied');
    } catch {
      say('The browser does not let the page copy');
    }
  }
}

function typeName(row) {
  switch (row.type) {
    case 'error': return 'error ' + (row.code || '');
    case 'stderr': return 'a line of standard error';
    case 'odd': return 'JSON that is no message';
    case 'text': return 'a line that is not JSON';
    default: return row.type;
  }
}

// finding says what is wrong.
export function finding(f) {
  return el('div.finding.level-' + word(f.level), null,
    el('div', null, el('span.badge', null, visible(f.level || 'rule')), ' ', el('b', null, visible(f.why || f.text || '')), where(f)),
    f.text && f.why ? el('p', null, visible(f.text)) : null,
    el('p.rule', null, visible(f.rule || '') + (f.cites ? ' · ' + visible(f.cites) : '')));
}

// where says at which member it is, unless the reason does.
export function where(f) {
  return f.path && !(f.why || '').startsWith(f.path) ? el('code', null, visible(f.path)) : null;
}

// word makes a class name of a level.
export function word(level) {
  return ['must', 'should', 'may', 'quirk'].includes(level) ? level : 'may';
}

