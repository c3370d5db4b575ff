// How this browser becomes a device of the gateway.

import { signal } from "@preact/signals";
import { wantsToLeave } from "./forget";

// Me is who this browser is for the gateway.
export interface Me {
  name: string;
  user: string;
  role: string;
  expires?: string;
}

export const trouble = signal(""); // why the last attempt failed
export const waits = signal(false); // for somebody who approves this browser

// secret is how the gateway recognizes this page when it asks again about a ticket.
const secret = Array.from(crypto.getRandomValues(new Uint8Array(24)), (b) => b.toString(16).padStart(2, "0")).join("");

// login sends what somebody has: a ticket, a code, or a token.
export async function login(what: { ticket?: string; code?: string; token?: string; name?: string }): Promise<boolean> {
  trouble.value = "";
  let approval = false;
  try {
    const answer = await fetch("/login", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name: nameOfBrowser(), ...(what.token ? {} : { secret }), ...what }), cache: "no-store",
    });
    if (answer.ok && answer.status !== 202) return true;
    if (answer.status === 202) {
      approval = waits.value = true;
      await new Promise((done) => setTimeout(done, 1500));
      return login(what);
    }
    const told: unknown = await answer.json().catch(() => null);
    trouble.value = typeof told === "object" && told !== null && "error" in told ? String(told.error) : `The gateway answers ${answer.status}.`;
  } catch {
    trouble.value = "No connection to the gateway.";
  } finally {
    if (!approval) waits.value = false;
  }
  return false;
}

const patience = 15_000; // ms for an answer to a log-out

// logout makes the gateway forget this browser. It returns what has gone wrong, or "", and whether it can be tried again:
// then the browser is a device still, and a page that is loaded tries again before anything else.
export async function logout(): Promise<{ wrong: string; again: boolean }> {
  wantsToLeave(true);
  let answer: Response;
  try {
    answer = await fetch("/logout", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: "{}", cache: "no-store", signal: AbortSignal.timeout(patience),
    });
  } catch {
    return { wrong: "There is no connection to the gateway.", again: true };
  }
  if (answer.status === 204 || answer.status === 503) wantsToLeave(false); // the browser has no cookie any more
  if (answer.status === 204) return { wrong: "", again: false };
  const told: unknown = await answer.json().catch(() => null);
  const wrong = typeof told === "object" && told !== null && "error" in told ? String(told.error) : `The gateway answers ${answer.status}.`;
  return { wrong, again: answer.status !== 503 };
}

// An Offer is a ticket in the address that nobody has used yet. me is what this browser is until then, or null.
export interface Offer {
  me: Me | null;
  answer: (use: boolean) => void;
}

export const offer = signal<Offer | null>(null);

// pairFromAddress removes the ticket from the address, if there is one, and uses it if the user wants that: a link may come
// from anybody, and what is done after it is done in the account of whoever made it.
export async function pairFromAddress(): Promise<void> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("t");
  if (location.pathname !== "/pair" && !ticket) return;
  history.replaceState(null, "", "/");
  if (!ticket) return;
  const me = await fetch("/whoami", { cache: "no-store" }).then((r) => (r.ok ? (r.json() as Promise<Me>) : null)).catch(() => null);
  const use = await new Promise<boolean>((answer) => { offer.value = { me, answer }; });
  offer.value = null;
  if (use) await login({ ticket });
}

// nameOfBrowser returns what this device is called in the list of devices.
export function nameOfBrowser(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox\//.test(agent) ? "Firefox" : /Edg\//.test(agent) ? "Edge" : /Chrome\//.test(agent) ? "Chrome" : /Safari\//.test(agent) ? "Safari" : "browser";
  const system = /Android/.test(agent) ? "Android" : /iPhone|iPad/.test(agent) ? "iOS" : /Windows/.test(agent) ? "Windows" : /Mac OS/.test(agent) ? "Mac" : /Linux/.test(agent) ? "Linux" : "";
  return system ? `${browser} on ${system}` : browser;
}
