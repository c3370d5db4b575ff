// Forgetting. What this browser keeps of a user goes when that user logs out, in this tab or in another one, when the
// gateway does not know the browser any more, and when the browser belongs to another user.

let forgotten = false;
const parts: (() => unknown)[] = [];

// isForgotten reports whether nothing may be kept any more, until the page is loaded again.
export const isForgotten = () => forgotten;

// keeps registers what removes a part of that which is kept.
export const keeps = (remove: () => unknown) => void parts.push(remove);

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("acp.forget") : null;

// tellOthers has the other tabs of this browser forget, too.
export const tellOthers = () => channel?.postMessage("forget");

// onTold sets what is called when another tab wants this one to forget.
export function onTold(forget: () => void) {
  if (channel) channel.onmessage = forget;
}

// forgetEverything removes what is kept, and has nothing kept any more.
export async function forgetEverything(): Promise<void> {
  forgotten = true;
  try {
    sessionStorage.clear();
  } catch {
    // There is no storage.
  }
  await Promise.allSettled(parts.map(async (remove) => remove()));
}

const userKey = "acp.user";

// isAnother reports whether what is kept belongs to another user. If nobody is known, it belongs to this one from now on.
export function isAnother(user: string): boolean {
  try {
    const before = localStorage.getItem(userKey);
    if (before === null && !forgotten) localStorage.setItem(userKey, user);
    return before !== null && before !== user;
  } catch {
    return false; // there is no storage, and nothing is kept
  }
}

export const leaveKey = "acp.leave"; // outlives what is forgotten, until the gateway has heard it

// wantsToLeave keeps that somebody has logged out whom the gateway has not heard.
export function wantsToLeave(does: boolean) {
  try {
    if (does) localStorage.setItem(leaveKey, "1");
    else localStorage.removeItem(leaveKey);
  } catch {
    // There is no storage.
  }
}

// wantedToLeave reports whether somebody did.
export function wantedToLeave(): boolean {
  try {
    return localStorage.getItem(leaveKey) !== null;
  } catch {
    return false;
  }
}
