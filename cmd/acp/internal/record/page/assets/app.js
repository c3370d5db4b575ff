// The page: what the parts tell each other, and the keys.

import {byId, el, say, setText} from './dom.js';
import {Detail} from './detail.js';
import {Findings} from './findings.js';
import {Store} from './store.js';
import {Stream} from './stream.js';
import {number, plural, size, visible} from './text.js';
import {Timeline} from './timeline.js';
import {Transcript} from './transcript.js';

// The token has done its part: the cookie is there now.
if (location.search) history.replaceState(null, '', '/');

const store = new Store();
const stream = new Stream();
const timeline = new Timeline(store);
const detail = new Detail(store);
const findings = new Findings(store);
const transcript = new Transcript();
const views = ['frames', 'transcript', 'findings'];

let view = 'frames', hello = null, state = 'connecting', told = {first: 1, lost: 0};

// What the server tells.

stream.addEventListener('hello', ({detail: {hello: h, fresh}}) => {
  hello = h;
  store.limits = {rows: h.maxRows, bytes: 2 * h.maxBytes};
  if (fresh && store.count > 0) {
    const {filter} = store;
    store.clear();
    store.refine(filter);
    detail.show(0);
  }
  if (fresh && h.recorded) timeline.follow(false); // it is read from its beginning
  const name = h.title || (h.command || []).join(' ') || 'acp';
  setText(byId('title'), visible(name));
  byId('title').title = visible((h.command || []).join(' '));
  setText(byId('where'), h.file ? (h.recorded ? '' : 'recording to ') + visible(h.file) : '');
  draw();
});
stream.addEventListener('told', (e) => { told = e.detail; draw(); });
stream.addEventListener('rows', (e) => store.add(e.detail));
stream.addEventListener('sessions', (e) => {
  transcript.sessions(e.detail);
  choices(byId('session'), 'all sessions', e.detail.map((s) => [s.id, s.title || s.id]));
  draw();
});
stream.addEventListener('bye', async (e) => {
  await transcript.all();
  e.detail();
});
stream.addEventListener('state', ({detail: {state: s}}) => {
  if (state === s) return;
  state = s;
  say(stateName());
  draw();
});

const states = {
  connecting: 'connecting', live: 'live', recorded: 'reading', ended: 'ended', gone: 'ended · acp is gone',
  lost: 'no connection, trying again', full: 'too many pages are open, trying again', refused: 'open the address that acp printed',
};

function stateName() {
  if (state === 'ended' && hello?.recorded) return 'all read';
  return store.paused && state === 'live' ? 'paused' : states[state];
}

// What changes in the store is drawn at most once a frame.

let due = 0;

function draw() {
  due ||= requestAnimationFrame(() => {
    due = 0;
    const name = stateName();
    setText(byId('state-text'), name);
    byId('state').dataset.state = store.paused && state === 'live' ? 'paused' : state;
    setText(byId('count-frames'), number(store.count));
    setText(byId('count-sessions'), transcript.list.length ? number(transcript.list.length) : '');
    setText(byId('count-findings'), store.findings.length ? number(store.findings.length) : '');
    byId('count-findings').className = 'count' + (store.findings.some((f) => f.level === 'must') ? ' bad' : '');
    document.title = (store.findings.length ? '⚠ ' : '') + byId('title').textContent + ' · acp';
    setText(byId('shown'), store.filtered ? number(store.shown) + ' of ' + plural(store.count, 'record') : plural(store.count, 'record') + ', ' + size(Math.round(store.bytes / 2)));
    const first = Math.max(told.first, store.first);
    const notes = [];
    setText(byId('secrets'), hello?.redacted ? 'secrets are replaced' : '');
    if (first > 1 && store.count) notes.push('The first ' + number(first - 1) + ' are not kept here' + (hello?.file ? '; the file has all' : ''));
    if (told.lost) notes.push(plural(told.lost, 'record') + ' came too fast to be shown' + (hello?.file ? '; the file has all' : ''));
    setText(byId('notes'), notes.join(' · '));
    byId('pause').setAttribute('aria-pressed', store.paused);
    byId('follow').setAttribute('aria-pressed', timeline.following);
    byId('clear').hidden = !store.filtered;
    emptiness();
    choices(byId('method'), 'all methods', [...store.methods.keys()].sort().map((m) => [m, m + ' (' + number(store.methods.get(m)) + ')']));
    findings.show();
    detail.refresh();
  });
}

function emptiness() {
  const node = byId('empty');
  node.hidden = store.shown > 0;
  if (store.shown > 0) return;
  const lines = store.count > 0 && store.filtered
    ? ['Nothing matches', 'No frame passes the filters. Press x to show everything.']
    : state === 'refused' ? ['Not allowed', 'Open the address that acp printed, with its token.']
    : state === 'ended' || state === 'gone' ? ['Nothing was said', 'The connection ended without a frame.']
    : ['Nothing yet', 'Frames appear here as soon as the client and the agent talk.'];
  const mark = lines.join();
  if (node.dataset.mark === mark) return;
  node.dataset.mark = mark;
  node.replaceChildren(el('h2', null, lines[0]), el('p', null, lines[1]));
}

// choices writes the options of a selection, if there are others now.
function choices(select, all, list) {
  list = list.slice(0, 500);
  const mark = JSON.stringify(list);
  if (select.dataset.mark === mark || document.activeElement === select) return;
  select.dataset.mark = mark;
  const value = select.value;
  select.replaceChildren(el('option', {value: ''}, all), ...list.map(([v, name]) => el('option', {value: v}, visible(name).slice(0, 80))));
  if (value && !list.some(([v]) => v === value)) select.append(el('option', {value}, visible(value)));
  select.value = value;
}

store.addEventListener('change', draw);

// Filters.

let typing = 0;

byId('search').addEventListener('input', (e) => {
  clearTimeout(typing);
  typing = setTimeout(() => refine({text: e.target.value}), 120);
});
byId('method').addEventListener('change', (e) => refine({method: e.target.value}));
byId('session').addEventListener('change', (e) => refine({session: e.target.value}));
for (const chip of document.querySelectorAll('.chip')) {
  chip.addEventListener('click', () => {
    const on = chip.getAttribute('aria-pressed') !== 'true';
    chip.setAttribute('aria-pressed', on);
    const {filter, value} = chip.dataset;
    if (filter === 'only') refine({[value]: on});
    else {
      const set = new Set(store.filter[filter]);
      if (on) set.add(value);
      else set.delete(value);
      refine({[filter]: set});
    }
  });
}
byId('clear').addEventListener('click', clear);

async function refine(change) {
  await store.refine(change);
  say(store.filtered ? number(store.shown) + ' of ' + plural(store.count, 'record') : 'Everything is shown');
}

// find looks for a text at once, and goes to what is found.
async function find(text) {
  byId('grid').focus();
  clearTimeout(typing);
  if (store.filter.text !== text || store.searching) await refine({text});
  timeline.follow(false); // who has looked for something stays there
  if (!timeline.selected || store.at(store.indexOf(timeline.selected)) !== timeline.selected) timeline.toFirst();
}

function clear() {
  clearTimeout(typing);
  byId('search').value = byId('method').value = byId('session').value = '';
  for (const chip of document.querySelectorAll('.chip')) chip.setAttribute('aria-pressed', chip.dataset.filter !== 'only');
  refine({dir: new Set('><'), kind: new Set(['request', 'answer', 'notification', 'other']), errors: false, findings: false, method: '', session: '', text: ''});
  if (document.activeElement === document.body || document.activeElement === byId('clear')) byId('grid').focus();
}

// Buttons.

byId('pause').addEventListener('click', pause);
byId('follow').addEventListener('click', follow);
byId('help').addEventListener('click', () => byId('keys').showModal());
timeline.addEventListener('follow', draw);
timeline.addEventListener('select', () => detail.show(timeline.selected));
timeline.addEventListener('open', () => byId('detail').focus());
timeline.addEventListener('resume', pause);
detail.addEventListener('back', back);
detail.addEventListener('go', (e) => go(e.detail));
findings.addEventListener('go', (e) => { go(e.detail); byId('grid').focus(); });

function pause() {
  store.pause(!store.paused);
  say(store.paused ? 'Paused' : 'Goes on');
}

function follow() {
  timeline.follow(!timeline.following);
  say(timeline.following ? 'Follows' : 'Stays');
}

function back() {
  byId('grid').focus();
  if (narrow.matches) timeline.select(0);
}

const narrow = matchMedia('(max-width: 760px)');

// go shows a row, even if the filters do not let it through.
async function go(seq) {
  if (!store.row(seq)) return;
  show('frames');
  if (!store.passes(store.row(seq))) clear();
  if (store.searching) await new Promise((done) => store.addEventListener('change', done, {once: true}));
  timeline.select(seq, {middle: true});
}

// show changes the view.
function show(name) {
  view = name;
  for (const v of views) {
    byId(v).hidden = v !== name;
    const tab = byId('tab-' + v);
    tab.setAttribute('aria-selected', v === name);
    tab.tabIndex = v === name ? 0 : -1;
  }
  document.body.dataset.view = name;
  if (name === 'transcript') transcript.later();
  if (name === 'findings') findings.show();
  timeline.list.later();
}

views.forEach((v, i) => {
  const tab = byId('tab-' + v);
  tab.addEventListener('click', () => show(v));
  tab.addEventListener('keydown', (e) => {
    const to = {ArrowRight: i + 1, ArrowLeft: i + views.length - 1, Home: 0, End: views.length - 1}[e.key];
    if (to === undefined) return;
    e.preventDefault();
    show(views[to % views.length]);
    byId('tab-' + views[to % views.length]).focus();
  });
});

// The divider.

const divider = byId('divider');

function divide(percent) {
  percent = Math.round(Math.max(20, Math.min(80, percent)));
  divider.setAttribute('aria-valuenow', percent);
  document.querySelector('.split').style.setProperty('--detail', percent + '%');
}
divider.addEventListener('pointerdown', (e) => {
  divider.setPointerCapture(e.pointerId);
  e.preventDefault();
});
divider.addEventListener('pointermove', (e) => {
  if (divider.hasPointerCapture(e.pointerId)) divide(100 - 100 * e.clientX / innerWidth);
});
divider.addEventListener('keydown', (e) => {
  const by = {ArrowLeft: 4, ArrowRight: -4}[e.key];
  if (!by) return;
  e.preventDefault();
  divide(Number(divider.getAttribute('aria-valuenow')) + by);
});

// Keys.

const everywhere = {
  '/': () => { show('frames'); byId('search').focus(); byId('search').select(); },
  '?': () => byId('keys').showModal(),
  f: () => follow(),
  p: () => pause(),
  x: () => clear(),
  1: () => { show('frames'); byId('grid').focus(); },
  2: () => { show('transcript'); (byId('transcript').querySelector('.conversation') || byId('tab-transcript')).focus(); },
  3: () => { show('findings'); (byId('findings').querySelector('button') || byId('tab-findings')).focus(); },
};

const inFrames = {
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
  g: () => { grid(); timeline.toFirst(); }, Home: () => { grid(); timeline.toFirst(); },
  G: () => { grid(); timeline.toLast(); }, End: () => { grid(); timeline.toLast(); },
  PageDown: () => move(timeline.list.page), PageUp: () => move(-timeline.list.page),
  a: () => { const row = store.row(timeline.selected); if (row) go(row.answer || row.asked || 0); },
  c: () => detail.copy(),
  n: () => violation(1), N: () => violation(-1),
};

function grid() {
  if (!byId('detail').contains(document.activeElement)) byId('grid').focus();
}

function move(by) {
  grid();
  timeline.move(by);
}

// violation goes to the next row with a finding.
function violation(step) {
  for (let seq = (timeline.selected || (step > 0 ? store.first - 1 : store.last + 1)) + step; store.row(seq); seq += step) {
    if (store.row(seq).marks) return go(seq);
  }
  say(step > 0 ? 'No more violations below' : 'No more violations above');
}

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || byId('keys').open) return;
  const on = e.target;
  if (on.matches('input, select, textarea')) {
    if (e.key === 'Escape') {
      if (on.value && on.matches('input')) {
        on.value = '';
        refine({text: ''});
      }
      byId('grid').focus();
      e.preventDefault();
    } else if (e.key === 'Enter' && on.matches('input')) {
      find(on.value);
      e.preventDefault();
    }
    return;
  }
  if (e.key === 'Escape') {
    if (view !== 'frames') {
      show('frames');
      byId('grid').focus();
    } else if (byId('detail').contains(on)) back();
    else if (timeline.selected) timeline.select(0);
    return;
  }
  if (e.key === 'Enter' && on === byId('grid')) {
    if (!timeline.selected) timeline.move(1);
    byId('detail').focus();
    e.preventDefault();
    return;
  }
  // Arrows and the like scroll where they can.
  const scrolls = /^(Arrow|Page|Home|End)/.test(e.key);
  const action = everywhere[e.key] || view === 'frames' && !(scrolls && on !== byId('grid') && on !== document.body) && inFrames[e.key];
  if (!action) return;
  e.preventDefault();
  action();
});

show('frames');
byId('grid').focus();
draw();
stream.open();
