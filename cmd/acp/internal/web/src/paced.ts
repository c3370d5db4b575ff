// A WebSocket whose messages leave the browser time to draw. An agent that says a thousand things a second would otherwise
// keep the page so busy with reading that it is drawn a few times a second only.

import { afterTask } from "./task";

const free = 20; // ms after a frame in which messages are read at once, for as long as nothing waits
const few = 8; // messages between two frames that are read at once in any case: answers, as a rule
const burst = 500; // ms in which everything is read at once after silence, such as what a session begins with
const silence = 500; // ms
const slice = 14; // ms of reading between two frames, once something waits
const most = 20_000; // messages that wait; when there are more, all are read, whatever that does to the frames

type Listener = (event: Event) => void;

export class PacedSocket extends WebSocket {
  private readonly waiting: (() => void)[] = []; // the oldest is at next
  private next = 0;
  private drawn = 0; // when the last frame was drawn
  private came = -silence; // when the last message came
  private began = 0; // when the first one came after silence
  private passed = 0; // messages since the last frame
  private step = 32; // messages that are read in a slice
  private due = false;
  private readonly wrapped = new Map<Listener, Listener>();

  // A socket asks for no subprotocol, and takes no headers, which browsers do not let a page set.
  constructor(url: string) {
    super(url);
  }

  override addEventListener(type: string, listener: unknown, options?: boolean | AddEventListenerOptions) {
    const f = listener as Listener;
    if (type === "open") return super.addEventListener(type, f, options);
    const w = (event: Event) => this.take(() => f(event)); // what ends the socket comes after what came before it
    this.wrapped.set(f, w);
    super.addEventListener(type, w, options);
  }

  override removeEventListener(type: string, listener: unknown, options?: boolean | EventListenerOptions) {
    const f = listener as Listener;
    super.removeEventListener(type, this.wrapped.get(f) ?? f, options);
    this.wrapped.delete(f);
  }

  // take reads a message, at once or when it is its turn.
  private take(read: () => void) {
    const now = performance.now();
    if (now - this.came >= silence) this.began = now;
    if (!this.due) this.drawn = now; // nothing was to be drawn
    this.came = now;
    if (this.next === this.waiting.length && (++this.passed <= few || now - this.drawn < free || now - this.began < burst)) {
      read();
    } else {
      this.waiting.push(read);
      if (this.waiting.length - this.next > most) this.read(most);
    }
    this.later();
  }

  private read(n: number) {
    const end = Math.min(this.next + n, this.waiting.length);
    while (this.next < end) this.waiting[this.next++]!();
    if (this.next === this.waiting.length) {
      this.waiting.length = this.next = 0;
    } else if (this.next > 1000) {
      this.waiting.splice(0, this.next);
      this.next = 0;
    }
  }

  // later reads on after the next frame, or soon: frames do not come while the page is hidden.
  private later() {
    if (this.due) return;
    this.due = true;
    let gone = false;
    const go = () => {
      if (gone) return;
      gone = true;
      clearTimeout(soon);
      this.due = false;
      this.passed = 0;
      const begin = (this.drawn = performance.now());
      if (this.waiting.length === 0) return;
      this.read(document.hidden ? most : this.step);
      afterTask(() => { // what is read is handled in microtasks
        const took = performance.now() - begin;
        this.step = Math.max(8, Math.min(2000, Math.round(this.step * Math.max(0.5, Math.min(2, slice / Math.max(took, 0.1))))));
      });
      this.later();
    };
    const soon = setTimeout(go, document.hidden ? 0 : 250);
    requestAnimationFrame(() => setTimeout(go, 0));
  }
}
