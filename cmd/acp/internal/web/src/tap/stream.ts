// The connection to the server: it begins again after a failure where it was.

import type { Hello, Row, SessionInfo } from "./types";

const first = 300, longest = 5000; // ms between tries

/** A Stream tells what the server says, in events. */
export class Stream extends EventTarget {
  private run = "";
  private last = 0;
  private tries = 0;
  private over = false;

  open(): void {
    const source = new EventSource("/events?after=" + this.last + "&run=" + this.run);
    const on = <T>(name: string, f: (said: T) => void) =>
      source.addEventListener(name, (e) => f(JSON.parse((e as MessageEvent<string>).data) as T));
    on<Hello>("hello", (hello) => {
      this.tries = 0;
      const fresh = hello.run !== this.run;
      if (fresh) this.last = 0;
      this.run = hello.run;
      this.tell("hello", {hello, fresh});
      this.tell("state", {state: hello.recorded ? "recorded" : "live"});
    });
    on("state", (told) => this.tell("told", told));
    on<Row[]>("rows", (rows) => {
      this.last = rows[rows.length - 1]!.seq;
      this.tell("rows", rows);
    });
    on<SessionInfo[] | null>("sessions", (list) => this.tell("sessions", list ?? []));
    on("end", () => {
      this.over = true;
      this.tell("state", {state: "ended"});
    });
    // The server goes: what is not here yet is fetched, then it is let go.
    on("bye", () => this.tell("bye", () => {
      source.close();
      this.tell("state", {state: "gone"});
    }));
    source.addEventListener("error", () => {
      source.close();
      void this.again();
    });
  }

  // again finds out what is wrong, and tries again unless it is for good.
  private async again(): Promise<void> {
    if (this.over) {
      this.tell("state", {state: "gone"});
      return;
    }
    let state = "lost";
    try {
      const answer = await fetch("/events", {method: "HEAD"});
      if (answer.status === 403) {
        this.tell("state", {state: "refused"});
        return;
      }
      if (answer.status === 503) state = "full";
    } catch {
      // Nobody is there.
    }
    this.tell("state", {state});
    const wait = Math.min(first * 2 ** this.tries++, longest);
    setTimeout(() => this.open(), wait);
  }

  private tell(name: string, detail: unknown): void { this.dispatchEvent(new CustomEvent(name, {detail})); }
}
