import { useEffect, useState } from "preact/hooks";
import { NoConnection, reasonOf } from "../link";
import type { Me } from "../login";
import { own } from "../meta";
import type { Page } from "../page";
import { since, visible } from "../parts/text";
import { qr } from "../qr";
import { choose, scheme, type Scheme } from "../scheme";
import { chooseLetters, letters } from "./keys";
import { Modal } from "./Modal";
import { Notifications } from "./Notifications";

// Settings has what is about this browser and the other devices, and not about a session.
export function Settings({ page }: { page: Page }) {
  return (
    <Modal title="Settings" close={() => { page.dialog.value = ""; }}>
      <Schemes />
      <Letters />
      <Notifications page={page} />
      <Devices page={page} />
    </Modal>
  );
}

function Schemes() {
  const names: [Scheme, string][] = [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]];
  return (
    <fieldset class="field schemes">
      <legend>Colours</legend>
      {names.map(([s, name]) => <label key={s} class="tick"><input type="radio" name="scheme" checked={scheme.value === s} onChange={() => choose(s)} /> <span>{name}</span></label>)}
    </fieldset>
  );
}

// Letters lets people switch off the keys that are characters.
function Letters() {
  return (
    <fieldset class="field schemes">
      <legend>Keys</legend>
      <label class="tick"><input type="checkbox" id="letters" checked={letters.value} onChange={(e) => chooseLetters(e.currentTarget.checked)} /> <span>Letters, digits and marks act by themselves, outside of texts</span></label>
    </fieldset>
  );
}

interface Device {
  id: string;
  user: string;
  name: string;
  role: string;
  used?: string;
  expires?: string;
  this?: boolean; // this browser
}

// A Ticket is for a new device. claimed means that a device has followed the link, and waits for a decision.
interface Ticket {
  id: string;
  code?: string;
  link?: string;
  ticket?: string;
  expires: string;
  state: string; // "open", "claimed", "approved", "denied", "dead", "redeemed", "ended"
  claimant?: string;
  address?: string;
  device?: Device;
}

// Whoami is the answer of the gateway about this browser.
type Whoami = Me & { device?: string };

const time = (t: string | undefined) => (t && !t.startsWith("0001") ? new Date(t) : null);

function Devices({ page }: { page: Page }) {
  const [me, setMe] = useState<Whoami | null>(null);
  const [list, set] = useState<Device[] | null>(null);
  const [wrong, setWrong] = useState("");
  const [revoking, revoke] = useState("");
  const load = async () => {
    try {
      set((await page.link.request<{ devices: Device[] }>(own("devices/list"), {})).devices);
    } catch (err) {
      set(null);
      setWrong((err as { code?: number }).code === -32601 ? "This gateway does not show devices here: acp devices list shows them." : reasonOf(err));
    }
  };
  useEffect(() => {
    void fetch("/whoami", { cache: "no-store" }).then((r) => (r.ok ? r.json() : null)).then((m) => setMe(m as Whoami), () => {});
    void load();
  }, []);
  const end = async (d: Device) => {
    setWrong("");
    try {
      await page.link.request(own("devices/revoke"), { id: d.id });
      revoke("");
      page.say(`${d.name} was revoked.`);
      await load();
    } catch (err) {
      setWrong(reasonOf(err));
    }
  };
  return (
    <>
      <h3>This browser</h3>
      <p>{me ? <>{visible(me.name || me.user)} · {me.role}{time(me.expires) ? ` · until ${time(me.expires)!.toLocaleString()}` : ""}</> : "…"}</p>
      <p class="buttons"><button onClick={() => void page.logout()}>Log out</button></p>
      <h3>Devices</h3>
      {list && (
        <ul class="people-list" aria-label="Devices">
          {list.map((d) => (
            <li key={d.id}>
              <span class="name">{visible(d.name)}{d.this && <b> (this browser)</b>}</span>
              <span class="about">{[d.role, d.user && d.user !== me?.user ? visible(d.user) : "", time(d.used) ? "used " + since(time(d.used)!) : "never used", time(d.expires) ? "until " + time(d.expires)!.toLocaleDateString() : ""].filter(Boolean).join(" · ")}</span>
              {!d.this && (revoking === d.id
                ? <span class="buttons"><button autofocus onClick={() => revoke("")}>Keep</button><button class="danger" onClick={() => void end(d)}>End its access</button></span>
                : <button aria-label={"Revoke " + visible(d.name)} onClick={() => revoke(d.id)}>Revoke</button>)}
            </li>
          ))}
          {list.length === 0 && <li>None.</li>}
        </ul>
      )}
      <p class="bad" role="alert">{wrong}</p>
      {list && me?.role === "owner" && <Pair page={page} paired={() => void load()} />}
    </>
  );
}

const roles: [string, string][] = [
  ["viewer", "sees sessions"], ["prompter", "begins and deletes sessions, sends prompts, cancels"],
  ["approver", "answers the agent's questions as well, changes options, and has agents start MCP servers"], ["owner", "may do everything"],
];

function Pair({ page, paired }: { page: Page; paired: () => void }) {
  const [role, setRole] = useState("approver");
  const [name, setName] = useState("");
  const [ticket, set] = useState<Ticket | null>(null);
  const [wrong, setWrong] = useState("");
  const begin = async (e: Event) => {
    e.preventDefault();
    setWrong("");
    try {
      set(await page.link.request<Ticket>(own("devices/pair"), { role, name: name.trim() || undefined }));
    } catch (err) {
      setWrong(reasonOf(err));
    }
  };
  if (ticket) return <Invitation page={page} made={ticket} done={() => { set(null); paired(); }} />;
  return (
    <form class="form" onSubmit={begin}>
      <h3>Pair another one</h3>
      <label>Name <input value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="the device says" spellcheck={false} autocapitalize="off" autocomplete="off" /></label>
      <label>Role <select value={role} onChange={(e) => setRole(e.currentTarget.value)} aria-describedby="role-about">{roles.map(([r]) => <option key={r} value={r}>{r}</option>)}</select></label>
      <p class="about" id="role-about">{roles.find(([r]) => r === role)?.[1]}</p>
      <p class="bad" role="alert">{wrong}</p>
      <div class="buttons"><button class="primary">Pair</button></div>
    </form>
  );
}

const lookEvery = 1500; // ms

const ends: Record<string, string> = {
  denied: "It was refused.", dead: "The code was wrong too often.", ended: "The time has passed, or it was cancelled.",
};

// Invitation shows what a new device needs, and asks about one that has followed the link.
function Invitation({ page, made, done }: { page: Page; made: Ticket; done: () => void }) {
  const [now, set] = useState(made);
  const [copied, copy] = useState("");
  const over = now.state === "redeemed" || now.state in ends;
  const ask = async (decide?: string) => {
    try {
      set(await page.link.request<Ticket>(own("devices/pair"), { id: made.id, decide }));
    } catch (err) {
      if (!(err instanceof NoConnection)) set((t) => ({ ...t, state: "ended" }));
    }
  };
  useEffect(() => {
    if (over) return;
    const timer = setInterval(() => void ask(), lookEvery);
    return () => clearInterval(timer);
  }, [over]);
  useEffect(() => () => { // nobody sees it end otherwise
    page.link.request(own("devices/pair"), { id: made.id, decide: "cancel" }).catch(() => {});
  }, []);
  if (over || now.state === "claimed" || now.state === "approved") {
    return (
      <div class="invitation" role="status">
        <h3>Pair another one</h3>
        {now.state === "claimed" && (
          <>
            <p>A device that calls itself <b>{visible(now.claimant ?? "") || "nothing"}</b>, at {visible(now.address ?? "") || "an unknown address"}, has followed the link. Is it yours?</p>
            <p class="buttons"><button autofocus onClick={() => void ask("deny")}>Refuse</button><button class="primary" onClick={() => void ask("approve")}>Approve</button></p>
          </>
        )}
        {now.state === "approved" && <p>The device was approved, and is fetching its credential …</p>}
        {now.state === "redeemed" && <p>{visible(now.device?.name ?? "The device")} has joined{now.device ? `, as ${now.device.role}` : ""}.</p>}
        {ends[now.state] && <p class="bad">{ends[now.state]}</p>}
        {over && <p class="buttons"><button class="primary" autofocus onClick={done}>Done</button></p>}
      </div>
    );
  }
  const { code = "", link = "" } = made, until = new Date(made.expires);
  return (
    <div class="invitation">
      <h3>Pair another one</h3>
      {link && <Code text={link} />}
      <p>Scan this, open the link there, or enter the code at {location.host}:</p>
      <p class="code" aria-label={"Code " + code.split("").join(" ")}>{code.slice(0, 3)} {code.slice(3)}</p>
      {link && <p class="address" tabIndex={0} aria-label="Link">{link}</p>}
      {/^(localhost|127\.|\[?::1)/.test(location.hostname) && <p class="about">Only the gateway's machine can reach this address. For other devices: acp serve --listen HOST:PORT --tls-self</p>}
      <p class="about">Valid once, until {until.toLocaleTimeString()}.</p>
      <p class="buttons">
        {link && <button onClick={() => void navigator.clipboard?.writeText(link).then(() => copy("Copied"), () => copy("The browser does not allow that"))}>{copied || "Copy link"}</button>}
        <button onClick={done}>Cancel</button>
      </p>
    </div>
  );
}

const margin = 4; // modules around a code, which readers need

// Code draws a text as a QR code, dark on light in both schemes.
function Code({ text }: { text: string }) {
  const dark = qr(text);
  if (!dark) return <p class="about">The link is too long for a QR code.</p>;
  const size = dark.length + 2 * margin;
  const d = dark.map((row, y) => row.map((on, x) => (on ? `M${x + margin} ${y + margin}h1v1h-1z` : "")).join("")).join("");
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label="QR code of the link" shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={d} fill="#000" />
    </svg>
  );
}
