// JSON as a tree that opens and closes.

import {el} from './dom.js';
import {decode, parse} from './json.js';
import {beginning, number, visible} from './text.js';

const page = 200; // members that are shown at once
const longest = 2000; // characters of a string
const roomy = 80; // values that are open from the start

// tree returns the nodes for a text. marked are the paths of members to point at, as
// 'params.update.content'; where one is missing, what it is missing in is pointed at.
export function tree(text, marked = []) {
  let v;
  try {
    v = parse(text);
  } catch {
    return el('pre.plain', null, visible(text));
  }
  const budget = {left: roomy};
  return el('div.json', null, value(v, null, '', 0, new Set(marked.map((p) => nearest(v, p.replace(/\[(\d+)\]/g, '.$1')))), budget));
}

// nearest returns as much of a path as there is.
function nearest(v, path) {
  let at = '';
  for (const step of path.split('.')) {
    const item = v.items?.find((x, i) => (x.key === undefined ? String(i) : decode(x.key)) === step);
    if (!item) break;
    at = at ? at + '.' + step : step;
    v = item.value;
  }
  return at;
}

function value(v, key, path, depth, marked, budget) {
  const name = key == null ? null : el('span.key', null, visible(key));
  const colon = key == null ? null : el('span.mark', null, ': ');
  const here = marked.has(path) && path !== '' ? '.here' : '';
  if (v.items === undefined) return el('div.leaf' + here, null, name, colon, scalar(v));
  const [open, close] = v.kind === 'object' ? '{}' : '[]';
  if (v.items.length === 0) return el('div.leaf' + here, null, name, colon, el('span.mark', null, open + close));
  budget.left -= v.items.length;
  const box = el('div.members');
  const short = visible(beginning(brief(v), 120));
  const node = el('details' + here, null,
    el('summary', null, name, colon, el('span.mark', null, open), el('span.brief', null, short, el('span.mark', null, close))),
    box, el('div.mark.close', null, close));
  let made = 0;
  const more = () => {
    box.querySelector(':scope > .more')?.remove();
    const end = Math.min(made + page, v.items.length);
    for (; made < end; made++) {
      const item = v.items[made];
      const step = item.key === undefined ? String(made) : decode(item.key);
      box.append(value(item.value, item.key === undefined ? null : item.key, path ? path + '.' + step : step, depth + 1, marked, budget));
    }
    const rest = v.items.length - made;
    if (rest > 0) box.append(el('button.more', {onclick: more}, 'show ' + number(Math.min(rest, page)) + ' of ' + number(rest) + ' more'));
  };
  const leads = [...marked].some((p) => p.startsWith(path === '' ? p : path + '.'));
  if (depth === 0 || leads || budget.left > 0 && depth < 12) {
    node.open = true;
    more();
  }
  // What is in it is made when it is opened.
  node.addEventListener('toggle', () => { if (node.open && made === 0) more(); });
  return node;
}

// brief says on a line what an object or array has.
function brief(v) {
  const parts = [];
  for (const item of v.items.slice(0, 4)) {
    const x = item.value;
    const s = x.items === undefined ? beginning(x.raw, 30) : x.kind === 'object' ? '{…}' : '[' + x.items.length + ']';
    parts.push(item.key === undefined ? s : item.key.slice(1, -1) + ': ' + s);
  }
  if (v.items.length > 4) parts.push('+' + number(v.items.length - 4));
  return ' ' + parts.join(', ') + ' ';
}

function scalar(v) {
  if (v.kind !== 'string') return el('span.' + v.kind, null, visible(v.raw));
  const out = el('span.string');
  const text = visible(v.raw);
  if (text.length <= longest) out.append(text);
  else {
    out.append(beginning(text, longest));
    const rest = el('button.more', {onclick: () => rest.replaceWith(text.slice(beginning(text, longest).length))}, '… ' + number(text.length - longest) + ' characters more');
    out.append(rest);
  }
  // Texts of several lines can be read as such.
  const said = decode(v.raw);
  if (said.includes('\n')) {
    const lines = el('button.more', {'aria-expanded': 'false', onclick: () => {
      const block = out.querySelector(':scope > pre');
      lines.setAttribute('aria-expanded', String(!block));
      if (block) block.remove();
      else out.append(el('pre.plain', null, visible(said)));
    }}, 'lines');
    out.append(' ', lines);
  }
  return out;
}
