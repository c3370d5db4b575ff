// The sessions that this user can see.

import { signal } from "@preact/signals";
import { methods, type ListSessionsResponse, type SessionInfo } from "@agentclientprotocol/sdk/experimental/v2";
import { keepList, keptList } from "./kept";
import { NoConnection, reasonOf, type Link } from "./link";
import { said } from "./meta";

// A Session is one of the list.
export interface Session {
  id: string;
  cwd: string;
  title: string;
  updated: number; // ms since 1970
  agent: string;
  state: string; // "idle", "running" or, as the last turn has ended, "failed" or "stopped"
  questions: number;
  clients: number;
  archived: boolean;
  role: string; // what this user may do, if it belongs to another one
  owner: string;
}

const pages = 20; // of the list, that are fetched at most

const keptAfter = 2000; // ms after which a list that changes is kept

// A Change is what the gateway says of the list.
export interface Change {
  sessions: (SessionInfo & { archived?: boolean })[];
  removed?: string[];
  more?: boolean; // ask for the list
}

export class Sessions {
  readonly list = signal<Session[]>([]);
  readonly loaded = signal(false);
  readonly failed = signal("");
  private loading = false;
  private again = false;
  private keeping: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly link: Link) {}

  // load fetches the list.
  async load(): Promise<void> {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    try {
      do {
        this.again = false;
        const list: Session[] = [];
        for (const archived of [false, true]) { // the SDK drops what says so in a session
          let cursor: string | undefined;
          for (let i = 0; i < pages; i++) {
            const got = await this.link.request<ListSessionsResponse>(methods.agent.session.list, { archived: archived ? "only" : "exclude", ...(cursor === undefined ? {} : { cursor }) });
            list.push(...got.sessions.map((s) => ({ ...sessionOf(s), archived })));
            if (list.length > 0 && !this.loaded.value) {
              this.list.value = list.slice();
              this.loaded.value = true;
            }
            cursor = got.nextCursor ?? undefined;
            if (cursor === undefined) break;
          }
        }
        list.sort((a, b) => b.updated - a.updated);
        this.list.value = list;
        this.loaded.value = true;
        this.failed.value = "";
        void keepList(list);
      } while (this.again);
    } catch (err) {
      if (!(err instanceof NoConnection)) this.failed.value = reasonOf(err);
    } finally {
      this.loading = false;
    }
  }

  // recall shows the list that this browser has kept, unless there is a newer one.
  async recall(): Promise<void> {
    const list = await keptList();
    if (this.loaded.value || list.length === 0) return;
    this.list.value = list;
    this.loaded.value = true;
  }

  // changed takes what the gateway says of the list: sessions that are others now, or that there is too much to say.
  changed(change: Change) {
    if (change.more || this.loading || !Array.isArray(change.sessions)) return void this.load();
    const list = new Map(this.list.value.map((s) => [s.id, s]));
    for (const id of change.removed ?? []) list.delete(id);
    for (const s of change.sessions) list.set(s.sessionId, sessionOf(s));
    this.list.value = [...list.values()].sort((a, b) => b.updated - a.updated);
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => void keepList(this.list.value), keptAfter);
  }

  // clear forgets the list.
  clear() {
    clearTimeout(this.keeping);
    this.list.value = [];
    this.loaded.value = false;
  }

  get(id: string): Session | undefined {
    return this.list.value.find((s) => s.id === id);
  }
}

const text = (v: unknown): string => (typeof v === "string" ? v : "");
const count = (v: unknown): number => (typeof v === "number" ? v : 0);

// sessionOf reads what the gateway says of a session.
export function sessionOf(info: SessionInfo & { archived?: boolean }): Session {
  const told = said(info._meta);
  return {
    id: info.sessionId, cwd: info.cwd, title: info.title ?? "", updated: Date.parse(info.updatedAt ?? "") || 0,
    agent: text(told.agent), state: text(told.state) || "idle", questions: count(told.waiting), clients: count(told.here),
    archived: info.archived === true, role: text(told.role), owner: text(told.owner),
  };
}
