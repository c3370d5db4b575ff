// What the page has open.

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { methods, type NewSessionResponse, type SessionConfigOption } from "@agentclientprotocol/sdk/experimental/v2";
import { fork } from "./actions";
import { Conversation } from "./conversation";
import { forgetEverything, isAnother, onTold, tellOthers } from "./forget";
import { Link, reasonOf, type LinkState } from "./link";
import { logout } from "./login";
import { own, parentOf, to } from "./meta";
import { Outboxes } from "./outbox";
import { prose, visible } from "./parts/text";
import { Push } from "./push";
import { Sessions } from "./sessions";

// A Dialog is what lies over the page.
export type Dialog = "" | "help" | "new" | "settings" | "rename" | "delete" | "share";

// An Agent can be started by the gateway.
export interface Agent {
  name: string;
  title?: string;
  default?: boolean;
  missing?: boolean; // it is not installed
}

export class Page {
  readonly link: Link;
  readonly sessions: Sessions;
  readonly push: Push;
  readonly open = signal<Conversation | null>(null);
  // away are conversations that are not shown any more, or not yet, and have prompts that are not confirmed.
  private readonly away = signal<Conversation[]>([]);
  private readonly outboxes = new Outboxes();
  readonly route = signal(idInAddress());
  readonly dialog = signal<Dialog>("");
  readonly subject = signal(""); // the session that the dialog is about
  readonly menu = signal<{ id: string; at: HTMLElement } | null>(null); // the session whose menu is open, and where
  readonly narrow = signal(false);
  readonly message = signal("");
  // agents are those that can be started, the default first.
  readonly agents = signal<Agent[]>([]);
  private readonly recent = signal<string[]>([]); // as the gateway says
  // directories are those of recent sessions, the latest first.
  readonly directories = computed<string[]>(() => [...new Set([...this.recent.value, ...this.sessions.list.value.map((s) => s.cwd)])]);

  constructor() {
    const of = (id: string) => (this.open.value?.id === id ? this.open.value : (this.away.value.find((c) => c.id === id) ?? null));
    this.link = new Link({
      update: (n) => of(parentOf(n.sessionId))?.update(n),
      permission: (p, withdrawn) => of(p.sessionId)?.permission(p, withdrawn) ?? Promise.resolve({ outcome: { outcome: "cancelled" } }),
      elicit: (p, withdrawn) => {
        const id = (p as { sessionId?: string }).sessionId;
        return (id === undefined ? this.open.value : of(id))?.elicit(p, withdrawn) ?? Promise.resolve({ action: "cancel" });
      },
      presence: (p) => of(p.sessionId)?.presence(p),
      decided: (d) => of(d.sessionId)?.decided(d),
      queued: (q) => of(q.sessionId)?.queued(q),
      sessions: (change) => this.sessions.changed(change),
    });
    this.sessions = new Sessions(this.link);
    this.push = new Push(this.link);
    this.link.opened = () => {
      void this.push.opened();
      void this.sessions.load();
      void this.open.value?.resume();
      for (const c of this.away.value) void c.resume();
      this.follow();
    };
    this.link.met = (user) => this.met(user);
    this.link.unknown = () => void this.forget();
    onTold(() => void this.forget());
    void this.outboxes.restore().then((sessions) => {
      for (const id of sessions) this.deliver(id);
    });
    effect(() => { // those that have nothing to send any more are left
      const done = this.away.value.filter((c) => !c.outbox.pending.value);
      if (done.length === 0) return;
      untracked(() => {
        this.away.value = this.away.value.filter((c) => !done.includes(c));
        for (const c of done) {
          c.close();
          const failed = c.sending.value.find((s) => s.failed);
          if (failed) this.say(`A prompt in “${visible(this.sessions.get(c.id)?.title || "Untitled")}” was not sent: ${failed.failed}`);
        }
      });
    });
    addEventListener("pageshow", (e) => { // from the cache for Back, with what there was to be seen then
      if (e.persisted) location.reload();
    });
    effect(() => { // without a network there is what was kept
      if (this.link.state.value === "lost" && this.link.known.value === null) void this.sessions.recall().then(() => this.follow());
    });
    addEventListener("hashchange", () => {
      this.route.value = idInAddress();
      this.follow();
    });
    effect(() => void this.push.shows(this.route.value));
    const tidy = () => {
      if (this.link.state.value === "open") this.push.tidy(this.sessions.list.value, this.route.value);
    };
    effect(tidy);
    document.addEventListener("visibilitychange", tidy);
    this.push.answer(() => this.route.value, tidy);
    const narrow = matchMedia("(max-width: 760px)");
    this.narrow.value = narrow.matches;
    narrow.addEventListener("change", () => { this.narrow.value = narrow.matches; });
    effect(() => {
      const waits = this.sessions.list.value.filter((s) => s.questions > 0).length;
      const c = this.open.value, title = c ? c.fold.value.title.value || this.sessions.get(c.id)?.title : "";
      document.title = (waits ? `(${waits}) ` : "") + (title ? prose(title) + " · acp" : "acp");
    });
  }

  // follow opens the session that the address names.
  private follow() {
    const id = this.route.value, before = this.open.value;
    if (before?.id === id || this.link.state.value === "refused") return;
    this.open.value = null;
    if (before) {
      if (before.outbox.pending.value) this.away.value = [...this.away.value, before];
      else before.close();
    }
    if (id === "") return;
    const there = this.away.value.find((c) => c.id === id);
    if (there) this.away.value = this.away.value.filter((c) => c !== there);
    const c = there ?? this.conversation(id);
    this.open.value = c;
    if (this.link.state.value === "lost") void c.recall();
    else if (!there) void c.resume();
  }

  private conversation(id: string) {
    const c = new Conversation(this.link, id, this.sessions.get(id)?.cwd ?? "/", this.outboxes.of(id));
    c.fork = (cursorId) => void fork(this, { id, cwd: this.sessions.get(id)?.cwd ?? c.cwd }, cursorId);
    return c;
  }

  // deliver sends what is to be sent in a session.
  private deliver(id: string) {
    if (this.open.value?.id === id) return this.open.value.resend();
    const c = this.conversation(id);
    this.away.value = [...this.away.value, c];
    if (this.link.state.value === "open") void c.resume();
  }

  private user = ""; // to whom belongs what this page shows

  // met compares whom the gateway takes this browser for with the user to whom belongs what it keeps.
  private met(user: string): boolean {
    const another = this.user !== "" && this.user !== user; // also if another tab has noticed first
    if (!isAnother(user) && !another) {
      this.user = user;
      return true;
    }
    void this.forget("connecting").then(() => location.reload());
    return false;
  }

  // forget removes from this page and this browser what is private. The page can only be paired, or loaded again, after that.
  async forget(state: LinkState = "refused"): Promise<void> {
    this.link.stop(state);
    this.open.value?.close();
    for (const c of this.away.value) c.close();
    batch(() => {
      this.open.value = null;
      this.away.value = [];
      this.outboxes.clear();
      this.sessions.clear();
      this.agents.value = [];
      this.recent.value = [];
      this.menu.value = null;
      this.dialog.value = this.subject.value = this.message.value = "";
    });
    document.getElementById("live")?.replaceChildren();
    await forgetEverything();
  }

  // logout forgets everything, here and in the other tabs, and has the gateway forget this browser.
  async logout(): Promise<void> {
    this.link.stop("refused");
    this.staying.value = { wrong: "", again: false };
    tellOthers();
    await this.forget();
    const left = await logout();
    if (left.wrong) this.staying.value = left;
    else location.replace("/");
  }

  // staying is set while somebody logs out: wrong is why that has failed, "" at first.
  readonly staying = signal<{ wrong: string; again: boolean } | null>(null);

  // go shows a session, or the list.
  go(id: string) {
    if (this.route.value === id) return;
    location.hash = id === "" ? "" : "#/" + encodeURIComponent(id);
  }

  // askStarts asks the gateway which agents there are, and where they were started.
  async askStarts(): Promise<void> {
    try {
      const got = await this.link.request<{ agents?: Agent[]; directories?: string[] }>(own("agents"), {});
      this.agents.value = (got.agents ?? []).filter((a) => typeof a?.name === "string");
      this.recent.value = (got.directories ?? []).filter((d) => typeof d === "string");
    } catch {
      // The gateway starts its default, and the directories of the list are known.
    }
  }

  // offers asks what a session would begin with, which starts its agent for that. It is undefined if the gateway does not know
  // that: it is another version than the page, then, since the SDK leaves out the capability.
  async offers(agent: string, cwd: string): Promise<SessionConfigOption[] | undefined> {
    try {
      const got = await this.link.request<{ configOptions?: SessionConfigOption[] }>("session/options", { cwd, _meta: to(agent ? { agent } : {}) });
      return got.configOptions ?? [];
    } catch (err) {
      if ((err as { code?: unknown } | null)?.code === -32601) return undefined;
      throw err;
    }
  }

  // create begins a session, with the values that options are to have.
  async create(agent: string, cwd: string, values: Map<string, string | boolean> = new Map()): Promise<string> {
    const configOptions = [...values].map(([configId, value]) => ({ configId, type: typeof value === "boolean" ? "boolean" : "id", value }));
    const made = await this.link.request<NewSessionResponse>(methods.agent.session.new, {
      cwd, mcpServers: [], ...(configOptions.length > 0 ? { configOptions } : {}), _meta: to(agent ? { agent } : {}),
    });
    this.dialog.value = "";
    // This connection is in the session already: it is left, and resumed as any other one.
    await this.link.request(methods.agent.session.close, { sessionId: made.sessionId }).catch(() => {});
    await this.sessions.load();
    this.go(made.sessionId);
    return made.sessionId;
  }

  // act does something with a session that needs no more than its name.
  async act(method: string, params: object): Promise<boolean> {
    try {
      await this.link.request(method, params);
      void this.sessions.load();
      return true;
    } catch (err) {
      this.say(reasonOf(err));
      return false;
    }
  }

  private quiet: ReturnType<typeof setTimeout> | undefined;

  // say shows something for a while.
  say(text: string) {
    this.message.value = text;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => { this.message.value = ""; }, 8000);
  }
}

function idInAddress(): string {
  const at = location.hash;
  if (!at.startsWith("#/")) return "";
  try {
    return decodeURIComponent(at.slice(2));
  } catch {
    return "";
  }
}
