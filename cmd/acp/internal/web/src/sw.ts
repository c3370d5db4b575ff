// The service worker keeps the page itself, so that it opens without a network, and shows what the gateway pushes. It
// keeps nothing that anybody has said.

import { prose } from "./parts/text";

interface Worker extends EventTarget {
  skipWaiting(): Promise<void>;
  readonly location: Location;
  readonly registration: ServiceWorkerRegistration;
  readonly clients: { claim(): Promise<void>; matchAll(o: object): Promise<Window[]>; openWindow(url: string): Promise<unknown> };
}
interface Window { visibilityState: string; focus(): Promise<unknown>; postMessage(m: unknown, ports: MessagePort[]): void; navigate(url: string): Promise<unknown> }
interface Extendable extends Event { waitUntil(p: Promise<unknown>): void }
interface Fetching extends Extendable { request: Request; respondWith(p: Promise<Response>): void }
interface Pushed extends Extendable { data: { json(): unknown } | null }
interface Clicked extends Extendable { notification: Notification }

const worker = self as unknown as Worker;
const windows = { type: "window", includeUncontrolled: true };
const cacheName = "acp-page";

declare const CHUNKS: string[]; // the parts of app.js, which the bundle names; another version has others

const shell = ["/", "/app.js", "/app.css", "/icon.svg", "/icon-192.png", "/manifest.webmanifest", ...CHUNKS];

worker.addEventListener("install", (e) => {
  (e as Extendable).waitUntil(caches.open(cacheName).then((c) => c.addAll(shell)).then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (e) => (e as Extendable).waitUntil(tidy().then(() => worker.clients.claim())));

// tidy removes what earlier versions have kept and this one does not need.
async function tidy() {
  const cache = await caches.open(cacheName);
  for (const kept of await cache.keys()) if (!shell.includes(new URL(kept.url).pathname)) await cache.delete(kept);
}

worker.addEventListener("fetch", (event) => {
  const e = event as Fetching, url = new URL(e.request.url);
  if (e.request.method !== "GET" || url.origin !== worker.location.origin) return;
  const page = e.request.mode === "navigate" && (url.pathname === "/" || url.pathname === "/pair");
  if (page || shell.includes(url.pathname) || /^\/chunk-[0-9A-Z]+\.(js|css)$/.test(url.pathname)) e.respondWith(fetched(e.request, page ? "/" : url.pathname));
});

// fetched returns what the server has or, if it cannot be reached, what it had.
async function fetched(request: Request, name: string): Promise<Response> {
  const cache = await caches.open(cacheName);
  if (name.startsWith("/chunk-")) { // another content has another name
    const kept = await cache.match(name);
    if (kept) return kept;
  }
  let answer: Response;
  try {
    answer = await fetch(request);
  } catch (err) {
    const kept = await cache.match(name);
    if (kept) return kept;
    throw err;
  }
  if (answer.ok && answer.type === "basic") {
    try {
      await cache.put(name, answer.clone());
    } catch { // there is no room: the old one does not fit to the others any more
      await cache.delete(name).catch(() => {});
    }
  }
  return answer;
}

// at returns where the page shows a session.
const at = (session: string) => (session ? "/#/" + encodeURIComponent(session) : "/");

const texts: Record<string, string> = { question: "A session waits for an answer", end: "A session has finished" };

const patience = 2000; // ms for a page to answer

// shows asks a page whether somebody sees a session there. Its address as it is here may be an old one.
const shows = (c: Window, session: string) => new Promise<boolean>((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = (e) => done(e.data === true);
  setTimeout(() => done(false), patience);
  c.postMessage({ shows: session }, [port2]);
});

// last is the last message that is being shown. In Chromium a notification that is being shown while somebody asks which there
// are is on the screen and nowhere else: it cannot be closed or followed any more.
let last: Promise<unknown> = Promise.resolve();

worker.addEventListener("push", (event) => {
  const e = event as Pushed;
  let said: { kind?: unknown; title?: unknown; session?: unknown } = {};
  try {
    said = (e.data?.json() ?? {}) as typeof said;
  } catch {
    // It is shown without what it says.
  }
  const text = (v: unknown) => (typeof v === "string" ? v : ""), session = text(said.session), kind = text(said.kind);
  e.waitUntil(worker.clients.matchAll(windows).then(async (open) => {
    const seen = await Promise.all(open.filter((c) => session && c.visibilityState === "visible").map((c) => shows(c, session)));
    const here = seen.includes(true), tag = session || "acp";
    const show = async () => {
      await worker.registration.showNotification(texts[kind] ?? texts.question, {
        body: prose(text(said.title)) || undefined, tag, icon: "/icon-192.png", data: { session, kind },
        renotify: !here, silent: here, // what is new is heard, too
      } as NotificationOptions);
      // A browser ends the subscription of a page that shows nothing: what is seen already is shown, and goes at once.
      if (here) for (const n of await worker.registration.getNotifications({ tag })) n.close();
    };
    await (last = last.then(show, show));
  }));
});

worker.addEventListener("notificationclick", (event) => {
  const e = event as Clicked, to = at((e.notification.data as { session?: string } | null)?.session ?? "");
  e.notification.close();
  e.waitUntil(worker.clients.matchAll(windows).then(async (open) => {
    const c = open.find((c) => c.visibilityState === "visible") ?? open[0];
    if (!c) return worker.clients.openWindow(to);
    await c.focus().catch(() => {}); // browsers may not allow it
    return c.navigate(to).catch(() => worker.clients.openWindow(to));
  }));
});
