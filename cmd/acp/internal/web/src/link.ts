// The connection to the gateway. It comes back by itself.

import { signal } from "@preact/signals";
import { client, methods, RequestError, type ClientConnection, type CreateElicitationRequest, type CreateElicitationResponse, type InitializeResponse, type RequestPermissionRequest, type RequestPermissionResponse, type SendRequestOptions, type UpdateSessionNotification } from "@agentclientprotocol/sdk/experimental/v2";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import type { Change } from "./sessions";
import { own, to, type Decided, type Presence, type Queued } from "./meta";
import { PacedSocket } from "./paced";
import { prose } from "./parts/text";
import { isOfTeam, renews, teamLogin, wasOfTeam } from "./team";

// A LinkState is "refused" if the gateway does not know this browser (any more).
export type LinkState = "connecting" | "open" | "lost" | "refused";

const first = 300, longest = 5000; // ms between tries
const patience = 15_000; // ms for a connection to be there
const quiet = 15_000; // ms without a frame after which the gateway is asked whether it is there
const prompt = 4_000; // ms it has for that: a network that has died says nothing
const pulse = 1_000; // ms between two looks at that

// Handlers get what the gateway sends, in order.
export interface Handlers {
  update(params: UpdateSessionNotification): void;
  permission(params: RequestPermissionRequest, withdrawn: AbortSignal): Promise<RequestPermissionResponse>;
  elicit(params: CreateElicitationRequest, withdrawn: AbortSignal): Promise<CreateElicitationResponse>;
  presence(params: Presence): void;
  decided(params: Decided): void;
  queued(params: Queued): void;
  sessions(params: Change): void;
}

// NoConnection is why a request failed that was not sent, or whose answer is lost.
export class NoConnection extends Error {
  constructor() {
    super("No connection");
  }
}

const pass = <T>(params: unknown) => params as T;

export class Link {
  readonly state = signal<LinkState>("connecting");
  readonly known = signal<InitializeResponse | null>(null); // what the gateway has said of itself
  // doubt is true while the browser says that there is no network, and the gateway has not been heard since.
  readonly doubt = signal(false);
  private connection: ClientConnection | null = null;
  private attempt: AbortController | null = null; // to connect
  private began = 0; // when that began
  private heard = 0; // when the last frame came
  private asked = 0; // when the gateway was asked whether it is there; 0 if it is not to answer
  private looked = 0; // when that was looked at last
  private spared = false; // the gateway has got more time, since the page did not run
  private watching: ReturnType<typeof setInterval> | undefined;
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = true;

  // opened is called whenever there is a connection again, before anything else is sent over it.
  opened: () => void = () => {};

  // met is called with the user whom the gateway takes this browser for, before there is a connection. It reports whether
  // there is to be one.
  met: (user: string) => boolean = () => true;

  // unknown is called when the gateway does not know this browser.
  unknown: () => void = () => {};

  readonly team = signal(""); // the issuer where a browser that is nobody can log in

  constructor(private readonly handlers: Handlers) {
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", () => this.wake());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake());
    addEventListener("offline", () => {
      this.doubt.value = true;
      this.probe();
    });
  }

  start() {
    this.stopped = false;
    if (this.state.value === "refused") this.state.value = "connecting";
    this.open();
  }

  // stop ends the connection for good.
  stop(state: LinkState) {
    this.stopped = true;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.state.value = state;
    this.attempt?.abort();
    this.drop()?.close();
  }

  // drop forgets the connection, and returns it.
  private drop(): ClientConnection | null {
    const c = this.connection;
    this.connection = null;
    clearInterval(this.watching);
    this.asked = 0;
    this.spared = false;
    return c;
  }

  // wake finds out at once whether there is a connection: the device may have slept, or changed its network.
  wake() {
    this.retry();
    this.probe();
    if (this.attempt && Date.now() - this.began > prompt) { // over a network that may be gone
      this.tries = 0;
      this.attempt.abort();
    }
  }

  // probe asks the gateway whether it is there. Any frame is an answer.
  private probe() {
    const c = this.connection;
    if (!c || this.asked) return;
    this.asked = this.looked = Date.now();
    this.request(own("ping"), {}).catch(() => {});
  }

  private hear() {
    this.heard = Date.now();
    this.asked = 0;
    this.spared = false;
    this.doubt.value = false;
  }

  // look ends a connection over which nothing comes any more. A page that did not run meanwhile, such as one that slept, gives
  // what has come a chance to be read.
  private look() {
    const now = Date.now(), late = now - this.looked > 2 * pulse;
    this.looked = now;
    if (this.asked) {
      if (late && !this.spared) {
        this.spared = true;
        this.asked = now;
      }
      if (now - this.asked < prompt) return;
      this.tries = 0;
      this.doubt.value = false;
      const c = this.drop();
      this.again();
      c?.close();
    } else if (Math.abs(now - this.heard) >= quiet) {
      this.probe();
    }
  }

  // retry tries now what would be tried later.
  private retry() {
    if (this.timer === undefined || this.stopped) return;
    clearTimeout(this.timer);
    this.tries = 0;
    this.open();
  }

  private async open() {
    this.timer = undefined;
    const h = this.handlers;
    let c: ClientConnection | null = null;
    const attempt = (this.attempt = new AbortController());
    this.began = Date.now();
    const late = setTimeout(() => attempt.abort(), patience);
    attempt.signal.addEventListener("abort", () => c?.close());
    const hear = () => this.hear();
    class Heard extends PacedSocket {
      constructor(url: string) {
        super(url);
        WebSocket.prototype.addEventListener.call(this, "message", hear); // as it comes, not when it is read
      }
    }
    try {
      const who = await fetch("/whoami", { cache: "no-store", signal: attempt.signal });
      if (who.status === 401 || who.status === 403) {
        const { team } = (await who.json().catch(() => ({}))) as { team?: unknown };
        this.team.value = typeof team === "string" ? team : "";
        if (who.status === 401 && this.team.value && renews()) {
          location.assign(teamLogin()); // the issuer knows the user still, as a rule
          return;
        }
        this.stop("refused");
        if (who.status === 401 && !(this.team.value && wasOfTeam())) this.unknown(); // or else it is the same user who comes back
        return;
      }
      if (!who.ok) throw new NoConnection();
      const { user, team } = (await who.json()) as { user?: unknown; team?: unknown };
      if (team) isOfTeam();
      if (this.stopped || (typeof user === "string" && user !== "" && !this.met(user))) return;
      const app = client({ name: "acp web" });
      app.onNotification(methods.client.session.update, ({ params }) => h.update(params));
      app.onRequest(methods.client.session.requestPermission, ({ params, signal }) => h.permission(params, signal));
      app.onRequest(methods.client.elicitation.create, ({ params, signal }) => h.elicit(params, signal));
      app.onNotification(own("presence"), pass<Presence>, ({ params }) => h.presence(params));
      app.onNotification(own("decided"), pass<Decided>, ({ params }) => h.decided(params));
      app.onNotification(own("queued"), pass<Queued>, ({ params }) => h.queued(params));
      app.onNotification(own("sessions"), pass<Change>, ({ params }) => h.sessions(params));
      const url = new URL("/acp", location.href);
      url.protocol = url.protocol.replace("http", "ws");
      c = app.connect(createWebSocketStream(url.href, { WebSocket: Heard as never }));
      const known = await within(c, c.agent.request(methods.agent.initialize, {
        protocolVersion: 2,
        info: { name: "acp-web", title: "acp in a browser", version: "1" },
        capabilities: { elicitation: { form: {}, url: {} }, session: { promptSuggestions: {}, commands: { skill: {} } } } as never,
        _meta: to({ presence: true, sessions: true }),
      }));
      if (this.stopped) {
        c.close();
        return;
      }
      this.connection = c;
      this.tries = 0;
      this.known.value = known;
      const opened = c;
      c.signal.addEventListener("abort", () => this.lost(opened));
      if (c.signal.aborted) throw new NoConnection();
      this.hear();
      this.looked = Date.now();
      this.watching = setInterval(() => this.look(), pulse);
      this.state.value = "open";
      this.opened();
    } catch {
      c?.close();
      this.drop();
      this.again();
    } finally {
      clearTimeout(late);
      if (this.attempt === attempt) this.attempt = null;
    }
  }

  private lost(c: ClientConnection) {
    if (this.connection !== c) return;
    this.drop();
    this.again();
  }

  private again() {
    if (this.stopped || this.timer !== undefined) return;
    this.state.value = "lost";
    const wait = Math.min(first * 2 ** this.tries++, longest);
    this.timer = setTimeout(() => this.open(), wait * (0.75 + Math.random() / 2));
  }

  // request sends a request, and cancels it if that is wanted. It fails with NoConnection if there is no connection, or none
  // any more.
  async request<T>(method: string, params: unknown, cancellationSignal?: AbortSignal): Promise<T> {
    const c = this.connection;
    if (!c) throw new NoConnection();
    if (Date.now() - this.heard > prompt) this.probe(); // nobody waits for an answer over a network that is gone
    return within(c, (c.agent.request as (method: string, params: unknown, options?: SendRequestOptions) => Promise<T>)(method, params, { cancellationSignal }));
  }

  private readonly leaving = new Map<string, Promise<void>>();

  // leave leaves a session, after what was asked of it before.
  leave(sessionId: string, after: Promise<unknown>) {
    const close = () => this.request<unknown>(methods.agent.session.close, { sessionId });
    const gone: Promise<void> = after.then(close, close).then(() => {}, () => {}).finally(() => {
      if (this.leaving.get(sessionId) === gone) this.leaving.delete(sessionId);
    });
    this.leaving.set(sessionId, gone);
  }

  // left returns when a session is left that is being left, or undefined.
  left(sessionId: string): Promise<void> | undefined {
    return this.leaving.get(sessionId);
  }

  async notify(method: string, params: unknown): Promise<void> {
    const c = this.connection;
    if (!c) throw new NoConnection();
    await (c.agent.notify as (method: string, params: unknown) => Promise<void>)(method, params);
  }
}

// within fails when the connection ends before the answer is there.
function within<T>(c: ClientConnection, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new NoConnection());
    if (c.signal.aborted) return gone();
    c.signal.addEventListener("abort", gone, { once: true });
    answer.then(resolve, (err) => reject(c.signal.aborted ? new NoConnection() : err)).finally(() => c.signal.removeEventListener("abort", gone));
  });
}

// reasonOf returns what went wrong, for people. An agent may have said it.
export function reasonOf(err: unknown): string {
  if (err instanceof RequestError || err instanceof Error) return prose(err.message || String(err));
  return prose(typeof err === "object" && err !== null && "message" in err ? String(err.message) : String(err));
}
