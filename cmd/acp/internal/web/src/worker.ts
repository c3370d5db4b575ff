// Registering the service worker.

// register has the browser keep the page. Where that is not possible, as without TLS on another machine, nothing is kept.
export function register() {
  if (!("serviceWorker" in navigator)) return;
  const url = "/sw.js";
  type Policies = { createPolicy(name: string, rules: object): { createScriptURL(url: string): string } };
  const policies = (window as { trustedTypes?: Policies }).trustedTypes;
  // The one script whose address the page names.
  const trusted = policies?.createPolicy("acp", { createScriptURL: (u: string) => { if (u !== url) throw new TypeError(u); return u; } });
  navigator.serviceWorker.register(trusted?.createScriptURL(url) ?? url).catch(() => {});
}
