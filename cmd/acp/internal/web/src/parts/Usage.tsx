// How much of its context and of our money an agent uses.

import { beginning, number, visible } from "./text";

export interface UsageState {
  used: number;
  size: number;
  cost?: { amount: number; currency: string } | null;
}

/** Usage shows tokens as a meter, and the cost, the model and the limit of the account if they are known. */
export function Usage({ usage, model = "", limit = "" }: { usage: UsageState; model?: string; limit?: string }) {
  const used = count(usage.used), size = count(usage.size);
  const part = size > 0 ? Math.min(used / size, 1) : 0;
  const said = number(used) + (size > 0 ? " of " + number(size) : "") + " tokens";
  return (
    <span class={"usage" + (part > 0.9 ? " full" : "")}>
      {size > 0 && (
        <span class="meter" role="meter" aria-label="Context" aria-valuemin={0} aria-valuemax={size} aria-valuenow={Math.min(used, size)} aria-valuetext={said}>
          <span class="level" style={{ width: (part * 100).toFixed(1) + "%" }} />
        </span>
      )}
      <span class="tokens" title={said}>{short(used)}{size > 0 && " / " + short(size)}</span>
      {usage.cost && <span class="cost">{money(usage.cost)}</span>}
      {model && <span class="cost">{model}</span>}
      {limit && <span class="cost">{limit}</span>}
    </span>
  );
}

function count(n: unknown): number {
  return typeof n === "number" && Number.isFinite(n) && n > 0 ? n : 0;
}

function short(n: number): string {
  if (n < 1000) return String(n);
  if (n < 999_500) return (n / 1000).toFixed(n < 9950 ? 1 : 0) + "k";
  return (n / 1e6).toFixed(n < 9_950_000 ? 1 : 0) + "M";
}

function money(cost: { amount: number; currency: string }): string {
  const amount = count(cost.amount), currency = String(cost.currency ?? "");
  if (/^[A-Z]{3}$/.test(currency)) {
    try {
      return amount.toLocaleString("en", { style: "currency", currency, maximumFractionDigits: amount < 1 ? 4 : 2 });
    } catch {
      // Then it is no currency.
    }
  }
  return amount.toLocaleString("en", { maximumFractionDigits: 4 }) + " " + visible(beginning(currency, 40));
}
