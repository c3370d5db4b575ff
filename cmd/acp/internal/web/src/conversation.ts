// A conversation: a session that is open on this page. It knows where in the log of the gateway it is, so that a connection
// that comes back continues where the last one ended.

import { computed, signal } from "@preact/signals";
import { methods, type ContentBlock, type CreateElicitationRequest, type CreateElicitationResponse, type PromptResponse, type RequestPermissionRequest, type RequestPermissionResponse, type ResumeSessionResponse, type SessionConfigOption, type UpdateSessionNotification } from "@agentclientprotocol/sdk/experimental/v2";
import { authorOf, Fold, type Message, type Reader, type Terminal } from "./fold";
import { NoConnection, reasonOf, type Link } from "./link";
import { keep, kept } from "./kept";
import { say } from "./say";
import { takenBack, tooLate, unsaid, type Outbox, type Sending } from "./outbox";
import { type Meta, own, positionIn, said, to, type Decided, type Person, type Position, type Presence, type Queued } from "./meta";
import { prose } from "./parts/text";
import { recordOf, Window, type View } from "./window";

const tail = 400; // records that are fetched when a session is opened
const lacking = 5000; // records that a page that comes back may lack; with more it begins anew, at the end
const page = 500; // records that are fetched as the user scrolls
const pages = 8; // of these, that are fetched for as long as they have nothing to show
const mostNew = 1000; // that are counted
const calm = 400; // ms after an answer in which the next question has none

// An Ask is a question of the agent. It has the same name whenever it is asked, and one that was asked later is greater.
// An answer says when it was given, in the time of performance.now and of events.
export type Ask = { key: number; name: string; order: number } & (
  | { kind: "permission"; request: RequestPermissionRequest; answer: (optionId: string, at: number) => void }
  | { kind: "form"; request: CreateElicitationRequest; answer: (response: CreateElicitationResponse) => void }
);

// named returns what the gateway knows a question by.
function named(request: { _meta?: Record<string, unknown> | null }): Pick<Ask, "key" | "name" | "order"> {
  const { ask, cursor } = said(request._meta), key = ++keys;
  return { key, name: typeof ask === "string" ? ask : String(key), order: typeof cursor === "number" ? cursor : Infinity };
}

// A History is a page of the history: records, of which not all have something to show, and where they are.
interface History {
  updates: { cursor: number; mark?: string; child?: string; update?: UpdateSessionNotification["update"] }[];
  from: number;
  to: number;
}

// What a conversation says beside its entries.
export interface Remark {
  key: number;
  text: string;
}

let keys = 0;

export class Conversation {
  private readonly reader: Reader = { away: false, shifts: () => this.shifts() };
  fold = signal(new Fold(this.reader));
  readonly asks = signal<Ask[]>([]);
  readonly people = signal<Person[]>([]);
  readonly remark = signal<Remark | null>(null);
  readonly loading = signal(true);
  readonly old = signal(0); // when what is shown was kept, in ms since 1970, while there is no connection; 0 otherwise
  readonly failed = signal(""); // why the session cannot be opened
  readonly earlier = signal(false); // there is more before the first entry
  readonly later = signal(false); // there is more after the last one
  readonly fetching = signal(false); // of what is earlier
  readonly catching = signal(false); // of what is later
  readonly news = signal(0); // messages and tool calls that have come since the end went out of view
  readonly busy = computed(() => this.fold.value.state.value === "running" || this.fold.value.state.value === "requires_action");

  // role is what this client may do in the session, "" if it is not known.
  readonly role = computed(() => this.people.value.find((p) => p.you)?.role ?? "");

  // you is the name by which others know this client, "" if there is none.
  readonly you = computed(() => this.people.value.find((p) => p.you)?.name ?? "");

  // folded says that the questions are put aside. They wait still.
  readonly folded = signal(false);

  private position: Position | undefined;
  private window = new Window();
  private generation = 0; // counts the connections
  private epoch = 0; // counts the times that what is here was replaced
  private closed = false;
  private joined = false; // this connection is in the session
  private whole = false; // all that was to be sent of the session has arrived
  private complete = false; // the agent has said that the history which it sends again is
  private joining: Promise<void> = Promise.resolve(); // the last attempt
  private ignoring = false; // what arrives, which is for an earlier conversation of this session

  constructor(private readonly link: Link, readonly id: string, readonly cwd: string, readonly outbox: Outbox) {}

  // sending are the prompts that the gateway has not confirmed.
  get sending() {
    return this.outbox.list;
  }

  // resume fetches what this page lacks of the session. It is called for each connection.
  resume(): Promise<void> {
    return (this.joining = this.join());
  }

  private async join(): Promise<void> {
    const generation = ++this.generation;
    this.joined = false;
    this.asks.value = []; // they are asked again, and this.stood has which they were
    const left = this.link.left(this.id);
    if (left) { // what comes until then was sent to the conversation that has been left
      this.ignoring = true;
      await left;
      if (generation !== this.generation) return;
    }
    this.ignoring = false;
    const fresh = !this.position || !this.whole;
    if (fresh) this.begin();
    else this.arriving = []; // it is not known yet whether that follows what is here
    try {
      const answer = await this.link.request<ResumeSessionResponse>(methods.agent.session.resume, {
        sessionId: this.id, cwd: this.cwd, mcpServers: [],
        ...(fresh ? { replayFrom: { type: "start" }, _meta: to({ tail }) } : { _meta: to({ tail: lacking, ...this.position }) }),
      });
      if (generation !== this.generation) return;
      const told = said(answer._meta), came = this.arriving;
      this.arriving = null;
      if (typeof told.from === "number" && (fresh || told.from !== this.position?.cursor)) { // what was here is too old
        if (fresh || !this.window.lacks(told.from)) {
          if (!fresh) this.begin();
          this.window.from = told.from;
          this.earlier.value = told.from > 0;
        }
      }
      for (const n of came ?? []) this.update(n);
      this.position ??= positionIn(answer._meta);
      this.whole = true;
      const f = this.fold.value;
      if (answer.configOptions) f.options.value = answer.configOptions;
      if (answer.availableCommands) f.commands.value = answer.availableCommands;
      f.flush();
      this.loading.value = false;
      this.failed.value = "";
      this.joined = true;
      this.resend();
    } catch (err) {
      if (generation !== this.generation) return;
      this.arriving = null;
      if (err instanceof NoConnection) return;
      if (!fresh) { // the position is not one of the session any more
        this.position = undefined;
        return this.join();
      }
      this.loading.value = false;
      this.failed.value = isMissing(err) ? "There is no such session any more, or you may not see it." : reasonOf(err);
      if (!this.complete && this.window.all.length > 0) this.failed.value = "The history is incomplete: " + this.failed.value;
      for (const s of this.sending.value) if (!s.failed) void this.outbox.change(s.operationId, { failed: this.failed.value });
    }
  }

  // recall shows what this browser has kept, until the gateway is reached.
  async recall(): Promise<void> {
    const generation = this.generation, last = await kept(this.id);
    if (!last || generation !== this.generation || this.closed || this.window.items.length > 0) return;
    const f = new Fold(this.reader);
    f.all(last.items);
    f.state.value = "idle";
    this.fold.value = f;
    this.old.value = last.at;
    this.loading.value = false;
  }

  private saving: ReturnType<typeof setTimeout> | undefined;

  // save keeps what is shown, now and then.
  private save() {
    this.saving ??= setTimeout(() => {
      this.saving = undefined;
      void keep(this.id, this.window.tail);
    }, 2000);
  }

  private arriving: UpdateSessionNotification[] | null = null;

  private begin() {
    this.epoch++;
    this.look(null); // what was in view is not here any more
    this.whole = this.complete = false;
    this.old.value = 0;
    this.position = undefined;
    this.window = new Window();
    this.earlier.value = this.later.value = false;
    this.fold.value = new Fold(this.reader);
  }

  // close leaves the session. Nothing ends by that.
  close() {
    this.closed = true;
    this.generation++;
    clearTimeout(this.saving);
    if (this.window.tail.length > 0) void keep(this.id, this.window.tail);
    this.link.leave(this.id, this.joining);
  }

  // update takes an update of the session.
  update(n: UpdateSessionNotification) {
    if (this.closed || this.ignoring) return;
    this.complete ||= (n.update.sessionUpdate as string) === "replay_complete";
    if (this.arriving) {
      this.arriving.push(n);
      return;
    }
    this.position = positionIn(n._meta) ?? this.position;
    if (n.update.sessionUpdate === "user_message" && this.hidden.has((n.update as { messageId: string }).messageId)) return;
    const here = this.window.add(n);
    if (here) this.fold.value.add(n);
    else this.fold.value.aside(n);
    this.count(n);
    this.save();
    if (n.update.sessionUpdate === "user_message") {
      const { operationId } = said((n.update as { _meta?: Meta })._meta); // of what this user has sent, if it was on a connection that is gone
      if (typeof operationId === "string") this.outbox.remove(operationId);
      this.arrived((n.update as { messageId: string }).messageId);
    }
    if (here && this.window.trim(this.view)) this.again();
  }

  private view: View | null = null; // where somebody reads, unless that is the end
  private readonly counted = new Set<string>(); // what has come meanwhile

  // look notes where somebody reads: what is around that stays here. null is the end.
  look(view: View | null) {
    this.view = view;
    this.reader.away = view !== null;
    if (view !== null) return;
    this.counted.clear();
    this.news.value = 0;
  }

  // count counts what the agent and others have said and done since the end went out of view.
  private count(n: UpdateSessionNotification) {
    const u = n.update as { sessionUpdate: string; messageId?: string; toolCallId?: string };
    if (this.view === null || n.sessionId !== this.id || this.counted.size >= mostNew) return;
    if (u.toolCallId === undefined && !/^(user|agent)_message/.test(u.sessionUpdate)) return;
    if (u.sessionUpdate.startsWith("user_message") && this.isOwn(authorOf(n))) return;
    this.counted.add(u.toolCallId === undefined ? "message:" + u.messageId : "tool:" + u.toolCallId);
    this.news.value = this.counted.size;
  }

  // shifts is called before what an entry begins with changes. Whoever shows the conversation sets it.
  shifts = () => {};

  // again folds everything that is here once more.
  private again() {
    this.shifts();
    const old = this.fold.value, f = new Fold(this.reader);
    f.all(this.window.all);
    f.options.value = old.options.value; // the answer to resume is not one of the items
    f.commands.value = old.commands.value;
    f.suggestions.value = old.suggestions.value;
    f.cursors.value = old.cursors.value;
    f.title.value = old.title.value;
    f.usage.value = old.usage.value;
    f.state.value = old.state.value;
    f.background.value = old.background.value;
    f.keep(old);
    f.flush();
    this.earlier.value = this.window.from > 0;
    this.later.value = this.window.to !== null;
    this.fold.value = f;
  }

  // history fetches a part of the history.
  private async history(where: { before: number } | { after: number }): Promise<History & { found: UpdateSessionNotification[] }> {
    const got = await this.link.request<History>(own("history"), { sessionId: this.id, ...where, limit: page });
    return { ...got, found: got.updates.flatMap(({ cursor, mark, child, update }) => (update ? [{ sessionId: child ?? this.id, update, _meta: to({ cursor, mark }) }] : [])) };
  }

  // before fetches what is above the first entry.
  async before(): Promise<void> {
    if (this.fetching.value || !this.earlier.value) return;
    this.fetching.value = true;
    const { epoch } = this, { from } = this.window;
    try {
      let found: UpdateSessionNotification[] = [], at = from;
      for (let i = 0; found.length === 0 && at > 0 && i < pages; i++) {
        const got = await this.history({ before: at });
        found = got.found;
        at = got.from;
      }
      if (epoch !== this.epoch || from !== this.window.from) return; // it is not what comes before what is here now
      this.window.older(found, at);
      this.window.trim(this.view);
      this.again();
    } catch (err) {
      this.refused(err);
    } finally {
      this.fetching.value = false;
    }
  }

  // after fetches what is below the last entry.
  async after(): Promise<void> {
    if (this.catching.value || this.window.to === null) return;
    this.catching.value = true;
    const { epoch } = this, { to } = this.window;
    try {
      let found: UpdateSessionNotification[] = [], at = to;
      for (let i = 0; found.length === 0 && at < this.reached && i < pages; i++) {
        const got = await this.history({ after: at });
        found = got.found;
        if (got.to <= at) break;
        at = got.to;
      }
      if (epoch !== this.epoch || to !== this.window.to) return;
      this.window.newer(found, at, this.reached);
      this.window.trim(this.view);
      this.again();
    } catch (err) {
      this.refused(err);
    } finally {
      this.catching.value = false;
    }
  }

  // refused notes why history was not sent. If what is here is not in the log any more, the end is fetched anew.
  private refused(err: unknown) {
    if (err instanceof NoConnection) return;
    const { reached } = this, { data } = err as { data?: { reason?: unknown } };
    this.note(reasonOf(err));
    if (data?.reason !== "compacted" || this.window.from === reached) return;
    const end = new Window();
    end.items = this.window.tail.filter((n) => (recordOf(n) ?? 0) > reached);
    end.from = reached;
    this.epoch++;
    this.window = end;
    this.look(null);
    this.again();
    void Promise.resolve().then(() => this.before());
  }

  // around fetches what is around a record, if the window is not there and that is still wanted then. It reports whether it has.
  async around(record: number, wanted: () => boolean = () => true): Promise<boolean> {
    if (this.fetching.value || record >= this.reached) return false;
    this.fetching.value = true;
    const { epoch } = this;
    try {
      const above = await this.history({ before: record }), below = await this.history({ after: record });
      if (epoch !== this.epoch || !wanted()) return false;
      this.window.move([...above.found, ...below.found], above.from, below.to, this.reached);
      this.again();
      return true;
    } catch {
      return false; // it was compacted, perhaps
    } finally {
      this.fetching.value = false;
    }
  }

  // toEnd shows the end of the session.
  toEnd() {
    this.look(null);
    if (this.window.to === null) return;
    this.window.toEnd();
    this.again();
  }

  // reached is the last record of which this page was sent everything.
  private get reached(): number {
    return this.position?.cursor ?? 0;
  }

  // forks has where this user can fork the session: by the key of what that is beside, its cursor and on which side it is.
  readonly forks = computed(() => {
    const own = this.role.value === "" || this.role.value === "owner"; // the agent may know more than others were shown
    return new Map(own ? this.fold.value.cursors.value.filter((c) => c.forks && c.beside).map((c) => [c.beside, c]) : []);
  });

  // fork forks the session at a cursor. Whoever shows the conversation sets it.
  fork: (cursorId: string) => void = () => {};

  // terminal returns a terminal that is here.
  readonly terminal = (id: string): Terminal | undefined => this.fold.value.terminal(id);

  note(text: string) {
    this.remark.value = { key: ++keys, text };
  }

  // prompt sends a prompt.
  prompt(content: ContentBlock[]) {
    void this.send(this.outbox.add(content).operationId);
  }

  // steer gives a message to the turn that runs. If none does, or the agent has no way for that, it is a prompt.
  async steer(content: ContentBlock[]) {
    if (!this.busy.value || !this.joined) return this.prompt(content);
    const { operationId } = this.outbox.add(content, true);
    let asPrompt = false, failed = "";
    try {
      const { outcome } = await this.link.request<{ outcome?: unknown }>(steering, { sessionId: this.id, prompt: content, _meta: { steering: { idleBehavior: "promptRequired" } } });
      if (outcome === "injected" || outcome === "startedNewTurn") return this.outbox.remove(operationId); // the log has it
      asPrompt = outcome === "promptRequired";
      failed = "the agent has not taken it.";
    } catch (err) {
      asPrompt = (err as { code?: unknown } | null)?.code === noMethod;
      failed = err instanceof NoConnection ? unsaid : reasonOf(err);
    }
    await this.outbox.change(operationId, asPrompt ? { steering: false } : { steering: false, failed });
    if (asPrompt) await this.send(operationId);
  }

  // isOwn reports whether a prompt of an author, "" if the gateway does not say it, is one of this user.
  private isOwn(author: string): boolean {
    return author === "" || author === this.you.value;
  }

  // lastPrompt returns the latest prompt that is here, if it is one of this user.
  lastPrompt(): ContentBlock[] | undefined {
    const last = this.fold.value.entries.value.findLast((e) => e.kind === "message" && e.role === "user") as Message | undefined;
    return last && this.isOwn(last.author) && last.skipped === 0 ? last.content : undefined;
  }

  // prompts returns the prompts of this user that are here, the latest last.
  prompts(): string[] {
    const said = this.fold.value.entries.value.flatMap((e) => (e.kind === "message" && e.role === "user" && this.isOwn(e.author) ? [textOf(e.content)] : []));
    return [...new Set([...said, ...this.sending.value.map((s) => textOf(s.content))].filter(Boolean).reverse())].reverse();
  }

  private readonly onWay = new Map<string, AbortController>(); // the operations whose answer is awaited

  private async send(operationId: string) {
    const s = this.outbox.get(operationId);
    if (!this.joined || !s || s.failed || s.steering || this.onWay.has(operationId)) return; // it is sent as soon as this connection is in the session
    const failed = tooLate(s);
    if (failed) return void this.outbox.change(operationId, { failed });
    const taken = new AbortController();
    this.onWay.set(operationId, taken);
    if (!s.sent) void this.outbox.change(operationId, { sent: Date.now() });
    if (this.busy.value || this.onWay.size > 1) void this.outbox.change(operationId, { before: this.onWay.size }); // until the gateway says it
    try {
      const answer = await this.link.request<PromptResponse>(methods.agent.session.prompt, { sessionId: this.id, prompt: s.content, _meta: to({ operationId }) }, taken.signal);
      if (this.outbox.get(operationId)?.taking) void this.outbox.change(operationId, { taking: false }); // it has begun
      if (said(answer._meta).repeated !== true) return this.arrived(answer.messageId, operationId);
      // It was sent before and has begun. The message of the answer is sent to this page alone, and the log has it under another ID.
      this.hide(answer.messageId);
      this.outbox.remove(operationId);
    } catch (err) {
      const lost = err instanceof NoConnection, taking = this.outbox.get(operationId)?.taking;
      if (taking && !lost) this.outbox.take(operationId);
      else if (taking) void this.outbox.change(operationId, { taking: false, failed: takenBack });
      else if (!lost) void this.outbox.change(operationId, { failed: reasonOf(err) });
      // Or else it is sent again.
    } finally {
      this.onWay.delete(operationId);
      void this.outbox.change(operationId, { before: null });
    }
  }

  // takeBack takes a prompt back that waits, unless it begins at this moment.
  async takeBack(s: Sending): Promise<void> {
    await this.outbox.change(s.operationId, { taking: true });
    this.onWay.get(s.operationId)?.abort();
  }

  private readonly hidden = new Set<string>(); // messages that are not in the log

  private hide(messageId: string) {
    this.hidden.add(messageId);
    this.window.drop(({ update: u }) => u.sessionUpdate === "user_message" && (u as { messageId: string }).messageId === messageId);
    this.fold.value.drop("user:" + messageId);
  }

  // resend sends what may not have arrived. The gateway runs each of them once.
  resend() {
    for (const s of this.sending.value) void this.send(s.operationId);
  }

  // retry sends a prompt again that was refused, and discard forgets it.
  retry(s: Sending) {
    this.discard(s);
    this.prompt(s.content);
  }

  discard(s: Sending) {
    this.outbox.remove(s.operationId);
  }

  private readonly waiting = new Map<string, string>(); // operations by their messages, which were confirmed and not seen yet

  // arrived notes that the log has a prompt of this page, or will have it: it is shown from there then, and not as one that
  // is being sent.
  private arrived(messageId: string, sent?: string) {
    if (sent !== undefined) {
      if (this.seen.has(messageId)) this.outbox.remove(sent);
      else this.waiting.set(messageId, sent);
      return;
    }
    this.seen.add(messageId);
    const operationId = this.waiting.get(messageId);
    if (operationId === undefined) return;
    this.waiting.delete(messageId);
    this.outbox.remove(operationId);
  }

  private seen = new Set<string>();

  // cancel cancels the running turn.
  async cancel() {
    try {
      await this.link.notify(methods.agent.session.cancel, { sessionId: this.id });
    } catch (err) {
      this.note(reasonOf(err));
    }
  }

  // set changes an option of the agent.
  async set(option: SessionConfigOption, value: string | boolean) {
    try {
      const answer = await this.link.request<{ configOptions?: SessionConfigOption[] }>(methods.agent.session.setConfigOption, {
        sessionId: this.id, configId: option.configId, type: option.type === "boolean" ? "boolean" : "id", value,
      });
      if (answer.configOptions) this.fold.value.options.value = answer.configOptions;
    } catch (err) {
      this.note(reasonOf(err));
    }
  }

  // permission is called with a question of the agent, and answers it when the user has.
  permission(request: RequestPermissionRequest, withdrawn: AbortSignal): Promise<RequestPermissionResponse> {
    return new Promise((resolve) => {
      const ask: Ask = {
        kind: "permission", ...named(request), request,
        answer: (optionId, at) => {
          if (!this.answers(ask, at)) return;
          resolve({ outcome: { outcome: "selected", optionId } });
        },
      };
      this.put(ask, withdrawn, () => resolve({ outcome: { outcome: "cancelled" } }));
    });
  }

  elicit(request: CreateElicitationRequest, withdrawn: AbortSignal): Promise<CreateElicitationResponse> {
    return new Promise((resolve) => {
      const ask: Ask = {
        kind: "form", ...named(request), request,
        answer: (response) => {
          if (!this.answers(ask, performance.now())) return;
          resolve(response);
        },
      };
      this.put(ask, withdrawn, () => resolve({ action: "cancel" }));
    });
  }

  private put(ask: Ask, withdrawn: AbortSignal, cancelled: () => void) {
    if (withdrawn.aborted) return cancelled();
    withdrawn.addEventListener("abort", () => {
      // When the connection has ended all of them go, and come again: this.stood has which they were until then.
      if (this.link.state.value !== "open") this.asks.value = this.asks.value.filter((a) => a.key !== ask.key);
      else if (this.asks.value.some((a) => a.key === ask.key)) {
        this.moves();
        this.remove(ask.key);
      }
      cancelled();
    }, { once: true });
    this.folded.value = false;
    this.show([...this.asks.value, ask].sort((a, b) => a.order - b.order || a.key - b.key));
    say("The agent asks: " + prose(ask.kind === "permission" ? ask.request.title : ask.request.message));
  }

  private stood: string[] = []; // the questions that were shown last, by their names
  private moved = -calm; // when a question went, or came into the place of another one, as is to be seen
  private unseen = false; // that is not drawn yet

  // show shows questions. Where one is now, another one may have been.
  private show(list: Ask[]) {
    const names = list.map((a) => a.name);
    if (names.some((name, i) => i < this.stood.length && name !== this.stood[i])) this.moves();
    this.stood = names;
    this.asks.value = list;
    if (list.length === 0) this.folded.value = false;
  }

  private moves() {
    this.moved = performance.now();
    this.unseen = true;
  }

  // drawn is called when the questions are on the screen as they are.
  drawn() {
    if (this.unseen) this.moved = performance.now();
    this.unseen = false;
  }

  // answers reports whether an answer counts: a question has one, and what is pressed twice, or was meant for a question
  // that stood there until that moment, does not answer the one that has come into its place.
  private answers(ask: Ask, at: number): boolean {
    if (at - this.moved < calm || !this.asks.value.some((a) => a.key === ask.key)) return false;
    this.moves();
    this.remove(ask.key);
    return true;
  }

  // putAside folds the questions, unless that was meant for one that stood there until that moment.
  putAside(at: number) {
    if (at - this.moved >= calm) this.folded.value = true;
  }

  private remove(key: number) {
    this.show(this.asks.value.filter((a) => a.key !== key));
  }

  presence(p: Presence) {
    this.people.value = p.people;
  }

  decided(d: Decided) {
    if (d.you || !d.by) return; // the conversation has who has decided what; this is for those who have had the question
    say(d.outcome === "cancelled" ? `${d.by} has dismissed “${d.title ?? "the question"}”` : `${d.by} has answered “${d.title ?? "the question"}”: ${d.outcome}`);
  }

  queued(q: Queued) {
    const s = this.sending.value.find((x) => this.onWay.has(x.operationId) && (!q.operationId || x.operationId === q.operationId));
    if (s) void this.outbox.change(s.operationId, { before: q.before ?? 0 });
  }
}

const steering = "_session/steering", noMethod = -32601; // the extension of the most used agents

// isMissing reports whether there is no session of that name.
const isMissing = (err: unknown): boolean => (err as { code?: unknown } | null)?.code === -32002;

// textOf returns the text of a prompt.
export const textOf = (content: ContentBlock[]): string => content.flatMap((b) => (b.type === "text" ? [(b as { text: string }).text] : [])).join("\n");
