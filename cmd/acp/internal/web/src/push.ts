// Notifications of the system while nobody sees the page: the gateway pushes them, sw.ts shows them.

import { signal } from "@preact/signals";
import { keeps } from "./forget";
import { NoConnection, reasonOf, type Link } from "./link";
import { own } from "./meta";
import type { Session } from "./sessions";

// A PushState says whether this browser gets notifications or, if it cannot, why.
export type PushState = "asking" | "on" | "off" | "browser" | "denied" | "device" | "gateway";

interface Told {
  key: string; // base64url
  on: boolean;
  title: boolean;
}

// What is shown still, and what would come, belongs to the user. A service that does not answer must not keep anybody here.
keeps(() => Promise.race([quit(), new Promise((done) => setTimeout(done, 2000))]));

async function quit() {
  const there = await navigator.serviceWorker?.getRegistration();
  for (const n of (await there?.getNotifications?.()) ?? []) n.close();
  await (await there?.pushManager?.getSubscription())?.unsubscribe();
}

export class Push {
  readonly state = signal<PushState>("asking");
  readonly title = signal(false); // notifications say what a session is called
  readonly wrong = signal("");
  private renewed = false;
  private key = "";
  private closing: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly link: Link) {
    document.addEventListener("visibilitychange", () => void this.sayHidden());
  }

  // answer has the service worker learn whether somebody sees a session here. A notification that it shows since the
  // answer was late is closed.
  answer(shown: () => string, tidy: () => void) {
    if (!("serviceWorker" in navigator)) return;
    navigator.serviceWorker.addEventListener("message", (e) => {
      const asked = (e.data as { shows?: unknown } | null)?.shows, sees = asked === shown() && !document.hidden;
      e.ports[0]?.postMessage(sees);
      if (sees) tidy();
    });
  }

  // shows tells the gateway which session this page shows, "" for none. It may be in others, whose prompts are not confirmed.
  async shows(session: string): Promise<void> {
    this.shown = session;
    await this.sayHidden();
  }

  private shown = "";

  // sayHidden tells the gateway whether somebody can see this page. Of what is seen nobody is notified.
  private async sayHidden(): Promise<void> {
    await this.link.request(own("hidden"), { hidden: document.hidden, shows: this.shown }).catch(() => {});
  }

  // opened is called when there is a connection.
  async opened(): Promise<void> {
    await this.sayHidden();
    await this.ask();
    if (this.state.value !== "on" || this.renewed) return;
    this.renewed = true;
    await this.subscribe(this.title.value, false); // the browser may have another subscription by now
  }

  // ask finds out whether this browser gets notifications.
  async ask(): Promise<void> {
    try {
      this.take(await this.link.request<Told>(own("push"), {}));
    } catch (err) {
      if (err instanceof NoConnection) return;
      const { code, data } = err as { code?: number; data?: { reason?: unknown } };
      if (code === -32601) this.state.value = "gateway";
      else if (data?.reason === "device") this.state.value = "device";
      else this.wrong.value = reasonOf(err);
    }
  }

  private take(t: Told) {
    this.key = t.key;
    this.title.value = t.title;
    if (!isPossible()) this.state.value = "browser";
    else if (Notification.permission === "denied") this.state.value = "denied";
    else this.state.value = t.on ? "on" : "off";
  }

  // subscribe has the gateway notify this browser. Only somebody who has clicked may be asked for permission.
  async subscribe(title: boolean, clicked: boolean): Promise<void> {
    this.wrong.value = "";
    try {
      if (clicked && Notification.permission !== "granted") await Notification.requestPermission();
      if (Notification.permission !== "granted") {
        if (Notification.permission === "denied") this.state.value = "denied";
        if (!clicked) await this.unsubscribe();
        return;
      }
      const manager = (await navigator.serviceWorker.ready).pushManager, key = bytesOf(this.key);
      let s = await manager.getSubscription();
      const former = s?.options.applicationServerKey;
      if (s && former && !same(new Uint8Array(former), key)) { // of another gateway at this address
        await s.unsubscribe();
        s = null;
      }
      s ??= await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
      this.take(await this.link.request<Told>(own("push/subscribe"), { subscription: s.toJSON(), title }));
    } catch (err) {
      this.wrong.value = err instanceof DOMException ? `The browser cannot subscribe at its push service: ${err.message}` : reasonOf(err);
    }
  }

  // unsubscribe ends that.
  async unsubscribe(): Promise<void> {
    this.wrong.value = "";
    try {
      this.take(await this.link.request<Told>(own("push/unsubscribe"), {}));
      await (await (await navigator.serviceWorker.ready).pushManager.getSubscription())?.unsubscribe();
    } catch (err) {
      this.wrong.value = reasonOf(err);
    }
  }

  // tidy closes notifications that say nothing new: of questions that have an answer, and of the session that is seen.
  tidy(list: Session[], seen: string) {
    if (!("serviceWorker" in navigator) || this.closing !== undefined) return;
    this.closing = setTimeout(() => {
      this.closing = undefined;
      void close(list, document.hidden ? "" : seen);
    }, 500);
  }
}

async function close(list: Session[], seen: string): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration().catch(() => undefined);
  for (const n of (await registration?.getNotifications?.().catch(() => [])) ?? []) {
    const { session, kind } = (n.data ?? {}) as { session?: string; kind?: string };
    const s = list.find((x) => x.id === session);
    if (session === seen || (kind === "question" && s && s.questions === 0)) n.close();
  }
}

const isPossible = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

const same = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((x, i) => x === b[i]);
