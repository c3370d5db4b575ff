// The conversation of a session, as the server folds it from the updates.

import {byId, el, setText} from './dom.js';
import {number, plural, size, visible} from './text.js';

const pace = 500; // ms between fetches of a conversation that goes on
const longest = 20_000; // characters of a text that are shown unless asked
const lines = 400; // of a diff or an output, likewise

export class Transcript extends EventTarget {
  constructor() {
    super();
    this.node = byId('transcript');
    this.list = []; // of sessions, as the server has them
    this.have = new Map(); // answers of the server, by session
    this.chosen = '';
    this.shown = {id: null, entries: []};
    this.opened = new Set(); // texts that were opened wholly
  }

  // sessions takes the list of sessions.
  sessions(list) {
    this.list = list;
    if (!list.some((s) => s.id === this.chosen)) this.chosen = list.length ? list[list.length - 1].id : '';
    this.later();
  }

  choose(id) {
    this.chosen = id;
    this.show();
    this.later();
  }

  // later fetches what is shown, at once or when the last time is long enough ago.
  later() {
    if (this.node.hidden) return;
    this.show();
    if (this.timer || this.busy) return;
    const wait = Math.max(0, (this.fetched || 0) + pace - performance.now());
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.fetch(this.chosen);
    }, wait);
  }

  // fetch gets the conversation of a session if it has changed.
  async fetch(id) {
    const known = this.list.find((s) => s.id === id);
    if (!known || this.have.get(id)?.changes >= known.changes) return;
    this.busy = true;
    try {
      const answer = await fetch('/session?id=' + encodeURIComponent(id));
      this.fetched = performance.now();
      if (answer.ok) this.have.set(id, await answer.json());
      else this.have.set(id, {changes: known.changes, transcript: {entries: [], session: {}}, failed: answer.status});
    } catch {
      this.gone = true;
    }
    this.busy = false;
    this.show();
    if (!this.gone && this.list.some((s) => s.id === this.chosen && s.changes > (this.have.get(this.chosen)?.changes ?? -1))) this.later();
  }

  // all fetches every conversation, before the server goes.
  async all() {
    for (const s of this.list.slice().reverse()) if (!this.gone) await this.fetch(s.id);
  }

  show() {
    if (this.node.hidden) return;
    if (this.list.length === 0) {
      this.node.replaceChildren(el('div.empty', null, el('h2', null, 'No session'), el('p', null, 'The conversation appears here when the client has opened a session.')));
      this.shown = {id: null, entries: []};
      return;
    }
    if (this.shown.id === null) {
      this.aside = el('nav.sessions', {'aria-label': 'Sessions'});
      this.main = el('div.conversation', {tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Conversation'});
      this.node.replaceChildren(this.aside, this.main);
    }
    this.choices();
    const data = this.have.get(this.chosen);
    if (this.shown.id !== this.chosen) {
      this.main.replaceChildren();
      this.shown = {id: this.chosen, entries: [], fresh: true};
    }
    if (data) this.entries(data);
    else if (this.gone) this.main.replaceChildren(el('p.note', null, 'This conversation was not fetched before acp ended; the recording has it.'));
  }

  choices() {
    const mark = JSON.stringify([this.list.map((s) => [s.id, s.title]), this.chosen]);
    if (this.choiceMark === mark && this.aside.firstChild) return;
    this.choiceMark = mark;
    const focused = document.activeElement?.dataset?.session;
    this.aside.replaceChildren(...this.list.map((s) =>
      el('button', {'data-session': s.id, 'aria-current': s.id === this.chosen ? 'true' : null, onclick: () => this.choose(s.id), title: visible(s.id)},
        el('span.name', null, visible(s.title || s.id)), s.title ? el('span.id', null, visible(s.id)) : null)));
    this.aside.hidden = this.list.length < 2;
    if (focused !== undefined) [...this.aside.children].find((b) => b.dataset.session === focused)?.focus();
  }

  // entries writes the entries that are new or different.
  entries(data) {
    const t = data.transcript;
    const atEnd = this.shown.fresh || this.main.scrollTop + this.main.clientHeight >= this.main.scrollHeight - 30;
    this.shown.fresh = false;
    const list = t.entries || [];
    const terminals = new Map(list.filter((e) => e.kind === 'terminal').map((e) => [e.update.terminalId, e]));
    const nodes = [];
    // What is missing of an entry is told there.
    const n = t.dropped?.entries;
    if (n) nodes.push({text: 'dropped' + n, make: () => el('p.note', null, 'The beginning was too long to keep: ' + number(n) + (n === 1 ? ' entry is' : ' entries are') + ' not shown.')});
    if (data.failed) nodes.push({text: 'failed', make: () => el('p.note', null, 'The server no longer has this conversation.')});
    for (const e of list) {
      const inside = e.kind === 'tool_call' ? (e.update.content || []).filter((c) => c.type === 'terminal').map((c) => terminals.get(c.terminalId)) : [];
      nodes.push({text: JSON.stringify([e, inside]), make: () => this.entry(e, terminals)});
    }
    nodes.push({text: 'state' + JSON.stringify(t.session), make: () => stateOf(t.session || {})});
    const old = this.shown.entries;
    nodes.forEach((n, i) => {
      if (old[i]?.text === n.text) {
        n.node = old[i].node;
        return;
      }
      n.node = n.make();
      if (old[i]) keepOpen(old[i].node, n.node);
      if (old[i]?.node.parentNode) old[i].node.replaceWith(n.node);
      else this.main.append(n.node);
    });
    for (const o of old.slice(nodes.length)) o.node.remove();
    // A node that went elsewhere was replaced; the order is that of the list.
    this.shown.entries = nodes;
    if (this.main.childNodes.length !== nodes.length) this.main.replaceChildren(...nodes.map((n) => n.node));
    if (atEnd) this.main.scrollTop = this.main.scrollHeight;
  }

  entry(e, terminals) {
    const u = e.update || {};
    switch (e.kind) {
      case 'message': {
        const role = {user_message: 'user', agent_thought: 'thought'}[u.sessionUpdate] || 'agent';
        const body = blocks(u.content);
        if (role === 'thought') return el('article.message.thought', {'aria-label': 'Thought'}, el('details', {open: true}, el('summary', null, 'Thought'), ...body, lost(e)));
        return el('article.message.' + role, null, el('h3', null, role === 'user' ? 'User' : 'Agent'), ...body, lost(e));
      }
      case 'tool_call': return tool(e, u, terminals);
      case 'plan': return plan(e, u.plan || {});
      case 'permission': return permission(e);
      case 'terminal': return terminal(e);
      case 'notice': return el('article.entry.notice', null, el('h3', null, visible(u.title || 'Notice')), el('p', null, visible(u.description || '')));
      default: return el('article.entry', null, el('h3', null, visible(e.kind + (u.title ? ' · ' + u.title : ''))), raw(u));
    }
  }
}

// keepOpen opens in the new node what people had opened in the old one.
function keepOpen(from, to) {
  const a = from.querySelectorAll('details'), b = to.querySelectorAll('details');
  a.forEach((d, i) => { if (b[i]) b[i].open = d.open; });
}

function lost(e) {
  return e.dropped ? el('p.note', null, size(e.dropped) + ' of this were too much to keep.') : null;
}

// text is a text that opens when it is long.
function text(s, what = 'pre.words') {
  s = visible(s);
  const node = el(what);
  const end = cutAt(s);
  if (end === s.length) node.append(s);
  else node.append(s.slice(0, end), el('button.more', {onclick: () => node.replaceChildren(s)}, '… ' + number(s.length - end) + ' characters more'));
  return node;
}

function cutAt(s) {
  let end = Math.min(s.length, longest);
  for (let i = -1, n = 0; (i = s.indexOf('\n', i + 1)) >= 0 && i < end;) if (++n >= lines) return i;
  return end;
}

function blocks(list) {
  return (list || []).map(block);
}

function block(c) {
  switch (c.type) {
    case 'text': return text(c.text || '');
    case 'image': case 'audio': return el('p.other', null, '[' + c.type + ' ' + visible(c.mimeType || '') + ', ' + size((c.data || '').length * 3 / 4 | 0) + ']');
    case 'resource_link': return el('p.other', null, '[' + visible((c.title || c.name || '') + ' ' + (c.uri || '')) + ']');
    case 'resource': return el('details', null, el('summary', null, visible(c.resource?.uri || 'resource')), c.resource?.text !== undefined ? text(c.resource.text) : el('p.other', null, '[binary]'));
    default: return raw(c);
  }
}

function raw(v) {
  return el('details', null, el('summary', null, 'JSON'), text(JSON.stringify(v, null, 2), 'pre.plain'));
}

const statusNames = {pending: 'pending', in_progress: 'running', completed: 'done', failed: 'failed', cancelled: 'cancelled'};

function tool(e, u, terminals) {
  const status = u.status || 'pending';
  return el('article.entry.tool.status-' + (status in statusNames ? status : 'pending'), null,
    el('h3', null, el('span.kind', null, visible(u.kind || 'other')), visible(u.title || u.name || u.toolCallId || 'tool call'), el('span.status', null, visible(statusNames[status] || status))),
    u.locations?.length ? el('p.locations', null, u.locations.map((l) => visible(l.path || '') + (l.line != null ? ':' + l.line : '')).join('  ')) : null,
    ...(u.content || []).map((c) => {
      switch (c.type) {
        case 'content': return block(c.content || {});
        case 'diff': return diff(c);
        case 'terminal': return terminals.has(c.terminalId) ? output(terminals.get(c.terminalId)) : el('p.other', null, '[terminal ' + visible(c.terminalId || '') + ']');
        default: return raw(c);
      }
    }),
    u.rawInput !== undefined ? el('details', null, el('summary', null, 'Input'), text(JSON.stringify(u.rawInput, null, 2), 'pre.plain')) : null,
    u.rawOutput !== undefined ? el('details', null, el('summary', null, 'Output'), text(JSON.stringify(u.rawOutput, null, 2), 'pre.plain')) : null,
    lost(e));
}

function diff(c) {
  const files = (c.changes || []).map((x) => visible(({add: 'new ', delete: 'deleted '}[x.operation] || '') + (x.path || '') + (x.newPath ? ' → ' + x.newPath : ''))).join(', ');
  const box = el('div.diff', null, el('div.files', null, files));
  const list = (c.patch?.text || '').split('\n');
  if (list[list.length - 1] === '') list.pop();
  const code = el('pre', {tabindex: '0', 'aria-label': 'Changes to ' + files});
  const add = (from, to) => {
    for (const l of list.slice(from, to)) {
      if (/^(diff --git|index |--- |\+\+\+ |new file mode|deleted file mode)/.test(l)) continue;
      const kind = l[0] === '+' ? '.plus' : l[0] === '-' ? '.minus' : l.startsWith('@@') ? '.hunk' : '';
      code.append(el('span.line' + kind, null, visible(l) + '\n'));
    }
  };
  add(0, lines);
  if (list.length > lines) {
    const more = el('button.more', {onclick: () => { more.remove(); add(lines); }}, number(list.length - lines) + ' lines more');
    code.append(more);
  }
  if (list.length) box.append(code);
  return box;
}

function output(e) {
  const u = e.update || {}, exit = u.exitStatus;
  return el('div.terminal', null,
    u.command ? el('div.command', null, '$ ' + visible(u.command)) : null,
    e.skipped ? el('p.note', null, size(e.skipped) + ' before this') : null,
    e.text ? text(e.text, 'pre.output') : null,
    exit ? el('div.exit', null, exit.signal ? 'ended by ' + visible(exit.signal) : 'exit status ' + (exit.exitCode ?? '?')) : null);
}

function terminal(e) {
  return el('article.entry', null, el('h3', null, el('span.kind', null, 'terminal'), visible(e.update?.terminalId || '')), output(e), lost(e));
}

const marks = {completed: '✓', in_progress: '▸', pending: '○'};

function plan(e, p) {
  const items = (p.entries || []).map((x) => el('li.step-' + (x.status in marks ? x.status : 'pending'), null,
    el('span.tick', {role: 'img', 'aria-label': visible(x.status || 'pending')}, marks[x.status] || '○'), ' ', visible(x.content || ''), x.priority === 'high' ? el('span.kind', null, 'high') : null));
  return el('article.entry.plan' + (e.removed ? '.removed' : ''), null, el('h3', null, e.removed ? 'Plan (taken away)' : 'Plan'),
    p.type === 'items' || p.entries ? el('ul', null, ...items) : p.type === 'markdown' && p.content ? text(String(p.content)) : raw(p));
}

function permission(e) {
  const o = e.outcome;
  const picked = o?.outcome === 'selected' ? (e.options || []).find((x) => x.optionId === o.optionId) : null;
  const said = !o ? 'no answer so far' : picked ? visible(picked.name || picked.optionId) : visible(o.outcome === 'selected' ? 'an option that was not offered: ' + o.optionId : o.outcome || 'unknown');
  return el('article.entry.permission', null,
    el('h3', null, el('span.kind', null, 'permission'), visible(e.title || ''), el('span.status', null, said)),
    e.description ? el('p', null, visible(e.description)) : null,
    el('p.options', null, ...(e.options || []).map((x) => el('span.option' + (x === picked ? '.picked' : ''), null, visible(x.name || x.optionId || '')))));
}

function stateOf(s) {
  const st = s.state;
  const words = [];
  if (st) words.push(st.state === 'idle' ? 'idle' + (st.stopReason ? ' · ' + st.stopReason : '') : st.state);
  if (s.usage && s.usage.size) words.push(number(s.usage.used || 0) + ' of ' + number(s.usage.size) + ' tokens');
  if (s.usage?.cost) words.push(s.usage.cost.amount + ' ' + (s.usage.cost.currency || ''));
  const node = el('p.session-state' + (st && st.state !== 'idle' ? '.busy' : ''));
  setText(node, visible(words.join(' · ')));
  return node;
}
