// The prompts of a session that the gateway has not confirmed. They outlive the conversation and the page: each has a name
// of its own, by which the gateway runs it once, however often it is sent.

import { computed, signal } from "@preact/signals";
import type { ContentBlock } from "@agentclientprotocol/sdk/experimental/v2";
import { dropSending, keepSending, keptSendings, type KeptSending } from "./kept";

const day = 24 * 3600_000; // ms for which the gateway knows names

// tooLate says why a prompt cannot be sent again, or "": the gateway would not know that it was sent before.
export const tooLate = (s: { sent: number }): string => (s.sent > 0 && Date.now() - s.sent > day ? "it was sent more than a day ago, and whether it has arrived is not known." : "");

// A Sending is a prompt that is not in the log, as far as this page knows.
export interface Sending extends KeptSending {
  before: number | null; // turns that come first, as far as is known, while its answer is awaited
  taking?: boolean; // it is being taken back
  steering?: boolean; // it is on its way into the turn that runs
}

// takenBack is what became of a prompt that was taken back, if the answer to that is lost.
export const takenBack = "the connection ended while it was taken back; the conversation shows whether it has begun";

// unsaid is what became of a message for the turn that runs, if the answer to that is lost: it is not sent again by itself.
export const unsaid = "the agent has not said whether it has this; the conversation shows it if it has";

let last = 0;

export class Outbox {
  readonly list = signal<Sending[]>([]);
  // pending reports whether something is to be sent, or to be confirmed.
  readonly pending = computed(() => this.list.value.some((s) => !s.failed));

  // taken are the prompts that were taken back, until they are in the field.
  readonly taken = signal<Sending[]>([]);

  constructor(readonly session: string) {}

  // add makes a prompt one that is to be sent.
  add(content: ContentBlock[], steering = false): Sending {
    last = Math.max(Date.now(), last + 1); // two have an order
    const s: Sending = {
      operationId: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`, session: this.session, made: last,
      sent: 0, content, failed: "", before: null, steering,
    };
    this.list.value = [...this.list.value, s];
    void this.keep(s);
    return s;
  }

  // restore adds a prompt that was kept by an earlier page.
  restore(k: KeptSending) {
    if (this.list.value.some((s) => s.operationId === k.operationId)) return;
    const s = { ...k, before: null, failed: k.failed || tooLate(k) };
    this.list.value = [...this.list.value, s].sort((a, b) => a.made - b.made);
  }

  get(operationId: string): Sending | undefined {
    return this.list.value.find((s) => s.operationId === operationId);
  }

  // change returns when what is kept has the change.
  async change(operationId: string, to: Partial<Sending>): Promise<void> {
    this.list.value = this.list.value.map((s) => (s.operationId === operationId ? { ...s, ...to } : s));
    const s = this.get(operationId);
    if (s && ("failed" in to || "sent" in to || "taking" in to || "steering" in to)) await this.keep(s);
  }

  // take makes a prompt one that was taken back. It is kept until it is removed.
  take(operationId: string) {
    this.taken.value = [...this.taken.value, ...this.list.value.filter((s) => s.operationId === operationId)];
    this.list.value = this.list.value.filter((s) => s.operationId !== operationId);
  }

  remove(operationId: string) {
    this.list.value = this.list.value.filter((s) => s.operationId !== operationId);
    void dropSending(operationId);
  }

  // A page that is loaded again before the answer does not send what was taken back.
  private keep({ operationId, session, made, sent, content, failed, taking, steering }: Sending): Promise<void> {
    return keepSending({ operationId, session, made, sent, content, failed: failed || (taking ? takenBack : steering ? unsaid : "") });
  }
}

// An Outboxes has those of all sessions.
export class Outboxes {
  private readonly all = new Map<string, Outbox>();

  of(session: string): Outbox {
    let o = this.all.get(session);
    if (!o) this.all.set(session, (o = new Outbox(session)));
    return o;
  }

  // restore has what earlier pages have kept, and returns the sessions for which there is something to send.
  async restore(): Promise<string[]> {
    for (const k of await keptSendings()) this.of(k.session).restore(k);
    return [...this.all.values()].filter((o) => o.pending.value).map((o) => o.session);
  }

  clear() {
    for (const o of this.all.values()) o.list.value = o.taken.value = [];
    this.all.clear();
  }
}
