// The cases of TestConversation.

import { Conversation } from "/conversation.js";
import { keptSendings } from "/kept.js";
import { NoConnection } from "/link.js";
import { Outbox } from "/outbox.js";

const key = "github.com/goacp/acp";

// message returns an update that is a message with a number, chunk one that is a piece of a long one.
const message = (i) => ({ sessionUpdate: "agent_message", messageId: "m" + i, content: [{ type: "text", text: i + " " }] });
const chunk = (i) => ({ sessionUpdate: "agent_message_chunk", messageId: "long", content: { type: "text", text: i + " " } });

// fits returns as many of the records as fit into an answer: the first ones, or the last ones.
function fits(list, last = false) {
  let n = 0, bytes = 0;
  for (; n < list.length; n++) if ((bytes += JSON.stringify(list[last ? list.length - 1 - n : n].update).length) > 4 << 20 && n > 0) break;
  return last ? list.slice(list.length - n) : list.slice(0, n);
}

// A Gateway has the log of one session, and is the link of a page that has it open.
class Gateway {
  constructor(n, make = message) {
    this.records = [];
    this.sent = 0;
    this.asked = [];
    for (let i = 0; i < n; i++) this.add(make(i));
  }

  // before is called with each request, and may have it wait or fail.
  before() {}

  // halfway is called when one half of what a client lacks was sent.
  halfway() {}

  add(update) {
    this.records.push({ cursor: this.records.length + 1, mark: "m" + (this.records.length + 1), update });
  }

  open() {
    this.talk = new Conversation(this, "s", "/", new Outbox("s"));
    return this.talk;
  }

  // deliver sends what was added.
  deliver() {
    for (const { cursor, update } of this.records.slice(this.sent)) {
      this.talk.update({ sessionId: "s", update, _meta: { [key]: { cursor: cursor - 1, mark: "m" + (cursor - 1), part: 1 } } });
      this.sent = cursor;
    }
  }

  // say adds messages, and sends them.
  say(n, make = message) {
    for (let i = 0; i < n; i++) this.add(make(this.records.length));
    this.deliver();
  }

  left() { return this.leaving; }
  leave() {}
  async notify() {}

  // prompted returns the answer to a prompt.
  prompted() { return {}; }

  async request(method, p) {
    this.asked.push({ method, ...p });
    await this.before(method, p);
    const head = this.records.length;
    if (method === "session/resume") {
      const { tail, cursor } = p._meta[key];
      const follows = cursor !== undefined && head - cursor <= tail, from = follows ? cursor : Math.max(0, head - tail);
      this.sent = from;
      if (follows) setTimeout(() => this.deliver());
      else {
        const all = this.records;
        this.records = all.slice(0, from + Math.floor((head - from) / 2));
        this.deliver();
        this.records = all;
        await this.halfway();
        this.deliver();
      }
      return { _meta: { [key]: { cursor: follows ? cursor : head, mark: "m", from } } };
    }
    if (method === "session/prompt") return this.prompted(p);
    if (!method.endsWith("/history")) return {};
    const past = (list) => list.map(({ cursor, mark, update }) => ({ cursor, mark, update, kind: "update" }));
    if (p.after !== undefined) {
      const list = fits(this.records.slice(p.after, p.after + p.limit)), to = p.after + list.length;
      return { updates: past(list), from: p.after, to, first: p.after === 0, last: to === head };
    }
    const list = fits(this.records.slice(Math.max(0, p.before - p.limit), p.before), true), from = p.before - list.length;
    return { updates: past(list), from, to: p.before, first: from === 0 };
  }
}

const tick = () => new Promise((done) => setTimeout(done));
const fail = (text) => { throw new Error(text); };
const same = (got, want, what) => got === want || fail(`${what}: ${got}, not ${want}`);

// numbers returns the numbers that a conversation shows.
function numbers(talk) {
  talk.fold.value.flush();
  return talk.fold.value.entries.value.filter((e) => e.kind === "message").flatMap((e) => e.content.flatMap((b) => b.text.trim().split(" ").map(Number)));
}

// consecutive fails unless the numbers follow each other, from one to another, if those are given.
function consecutive(talk, first, last) {
  const all = numbers(talk);
  for (let i = 1; i < all.length; i++) if (all[i] !== all[i - 1] + 1) fail(`${all[i - 1]} is followed by ${all[i]}`);
  if (first !== undefined) same(all[0], first, "the first one");
  if (last !== undefined) same(all.at(-1), last, "the last one");
  return all;
}

// looks has somebody see a screen of what is shown, from an entry on.
function looks(talk, i) {
  const list = talk.fold.value.entries.value, at = Math.max(0, Math.min(i, list.length - 20));
  const first = list[at].at, { last } = list[Math.min(at + 19, list.length - 1)];
  talk.look({ first, last, from: first, to: last });
}

const bound = 6500; // updates of a window
const drawn = (talk) => talk.fold.value.entries.value.length;

// held has requests of a kind wait until the function that it returns is called.
function held(g, kind) {
  let go;
  const until = new Promise((done) => { go = done; });
  g.before = (method) => (method.endsWith(kind) ? until : undefined);
  return () => { g.before = () => {}; go(); };
}

// takenBack has a session get prompts that are taken back, and returns for each how its answer comes.
async function takenBack(g, ...texts) {
  const answers = [], talk = g.open();
  await talk.resume();
  g.before = (method) => (method === "session/prompt" ? new Promise((resolve, reject) => answers.push({ resolve, reject })) : undefined);
  g.prompted = (p) => ({ messageId: p.prompt[0].text });
  for (const text of texts) talk.prompt([{ type: "text", text }]);
  for (const s of talk.sending.value) await talk.takeBack(s);
  same(talk.sending.value.every((s) => s.taking), true, "they are being taken back");
  same((await keptSendings()).every((s) => s.failed !== ""), true, "a page that is loaded again does not send them");
  return answers;
}

// steered has a message given to the turn that runs, which is answered with an outcome or an error, and returns the gateway.
async function steered(outcome) {
  const g = new Gateway(3), talk = g.open();
  await talk.resume();
  talk.fold.value.state.value = "running";
  g.before = (method) => {
    if (method !== "_session/steering") return;
    if (outcome instanceof Error || outcome?.code) throw outcome;
  };
  const request = g.request.bind(g);
  g.request = async (method, p) => {
    const res = await request(method, p);
    return method === "_session/steering" ? { outcome } : res;
  };
  await talk.steer([{ type: "text", text: "more" }]);
  await tick();
  g.methods = g.asked.map((a) => a.method).filter((m) => m !== "session/resume").join(" ");
  return g;
}

globalThis.cases = {
  async "a message for the turn that runs"() {
    for (const outcome of ["injected", "startedNewTurn"]) {
      const g = await steered(outcome);
      same(g.methods, "_session/steering", outcome);
      same(g.talk.sending.value.length, 0, outcome + " leaves");
      same(g.asked.at(-1)._meta.steering.idleBehavior, "promptRequired", "it asks for");
    }
    for (const outcome of ["promptRequired", { code: -32601 }]) {
      const g = await steered(outcome);
      same(g.methods, "_session/steering session/prompt", "as a prompt");
      for (const left of g.talk.sending.value) g.talk.discard(left);
    }
    for (const outcome of ["failed", "teleported", undefined, { code: -32603, message: "no" }, new NoConnection()]) {
      const g = await steered(outcome);
      same(g.methods, "_session/steering", "it is not sent again after " + (outcome?.code ?? outcome));
      const [s] = g.talk.sending.value;
      if (!s?.failed || s.content[0].text !== "more") fail(`${outcome} leaves ${JSON.stringify(s)}`);
      g.talk.resend();
      await tick();
      same(g.asked.filter((a) => a.method === "session/prompt").length, 0, "a connection that comes back sends");
      g.talk.retry(s);
      await tick();
      same(g.asked.filter((a) => a.method === "session/prompt").length, 1, "sent again by hand");
      for (const left of g.talk.sending.value) g.talk.discard(left);
    }
  },

  async "a message for the turn that runs, and a page that is loaded again"() {
    const g = new Gateway(3), talk = g.open();
    await talk.resume();
    talk.fold.value.state.value = "running";
    g.before = (method) => method === "_session/steering" && new Promise(() => {});
    void talk.steer([{ type: "text", text: "half way" }]);
    await tick();
    talk.resend();
    let k;
    for (let i = 0; i < 100 && !k; i++) {
      await tick();
      k = (await keptSendings()).find((s) => s.content[0].text === "half way");
    }
    if (!k?.failed) fail(`it is kept as ${JSON.stringify(k)}`);
    same(g.asked.filter((a) => a.method === "session/prompt").length, 0, "prompts");
    talk.discard(k);
    while ((await keptSendings()).some((s) => s.operationId === k.operationId)) await tick();
  },

  async "a prompt that is taken back as the connection ends"() {
    const g = new Gateway(1), [answer] = await takenBack(g, "one"), { talk } = g;
    answer.reject(new NoConnection());
    await tick();
    const [s] = talk.sending.value;
    same(s.failed.startsWith("the connection ended") && s.before === null && !s.taking, true, "it is marked");
    await talk.resume();
    await tick();
    same(g.asked.filter((a) => a.method === "session/prompt").length, 1, "it is not sent again");
    talk.discard(s);
    same((await keptSendings()).length, 0, "what is kept");
  },

  async "a prompt that is taken back and has begun"() {
    const g = new Gateway(1), [answer] = await takenBack(g, "one"), { talk } = g;
    answer.resolve();
    await tick();
    same((await keptSendings()).map((s) => s.failed).join("|"), "", "what is kept");
    same(talk.sending.value[0].before, null, "nothing can be taken back");
    g.add({ sessionUpdate: "user_message", messageId: "one", content: [] });
    g.deliver();
    same(talk.sending.value.length + (await keptSendings()).length + talk.outbox.taken.value.length, 0, "what is left");
  },

  async "prompts that are taken back while another session is opened"() {
    const g = new Gateway(1), answers = await takenBack(g, "one", "two"), { outbox } = g.talk;
    g.talk.close();
    for (const { reject } of answers) reject(new Error("cancelled"));
    await tick();
    same(outbox.taken.value.map((s) => s.content[0].text).join(), "one,two", "what is to be in the field");
    same(outbox.list.value.length, 0, "what is to be sent");
    same((await keptSendings()).length, 2, "what is kept");
    for (const s of outbox.taken.value) outbox.remove(s.operationId);
    same((await keptSendings()).length, 0, "what is kept after that");
  },

  async "from the end to the beginning and back, while more comes"() {
    const g = new Gateway(20_000), talk = g.open();
    await talk.resume();
    let before = talk.fold.value.entries.value[0];
    while (talk.earlier.value) {
      looks(talk, 0);
      g.say(7);
      await talk.before();
      consecutive(talk);
      if (drawn(talk) > bound) fail(`${drawn(talk)} entries`);
      if (talk.fold.value.entries.value.includes(before)) before = talk.fold.value.entries.value[0];
      else fail("what was here is drawn again");
    }
    consecutive(talk, 0);
    same(talk.later.value, true, "there is more behind");
    same(talk.news.value > 200, true, "what came is counted");
    while (talk.later.value) {
      looks(talk, drawn(talk));
      if (g.records.length < 21_000) g.say(7);
      const last = numbers(talk).at(-1);
      await talk.after();
      if (numbers(talk).at(-1) <= last) fail("it comes to an end");
      consecutive(talk);
      if (drawn(talk) > bound) fail(`${drawn(talk)} entries`);
    }
    talk.look(null);
    same(talk.news.value, 0, "what came was seen");
    g.say(3);
    consecutive(talk, undefined, g.records.length - 1);
  },

  async "at once to the end"() {
    const g = new Gateway(9000), talk = g.open();
    await talk.resume();
    while (talk.earlier.value) {
      looks(talk, 0);
      await talk.before();
    }
    g.say(5000); // more than is kept of the end
    same(drawn(talk) <= bound, true, "the window has a bound");
    talk.toEnd();
    consecutive(talk, undefined, 13_999);
    g.say(1);
    consecutive(talk, undefined, 14_000);
    while (talk.earlier.value) {
      looks(talk, 0);
      await talk.before();
      consecutive(talk);
    }
    consecutive(talk, 0);
  },

  async "history that comes while old updates are forgotten"() {
    const g = new Gateway(2000), talk = g.open();
    await talk.resume();
    const go = held(g, "/history"), fetched = talk.before();
    g.say(6101); // so that what is fetched would have room
    go();
    await fetched;
    consecutive(talk, undefined, 8100);
    while (talk.earlier.value) {
      looks(talk, 0);
      await talk.before();
      consecutive(talk);
    }
    consecutive(talk, 0);
  },

  async "history of what is later, which comes after it was dropped again"() {
    const g = new Gateway(20_000), talk = g.open();
    await talk.resume();
    for (let i = 0; i < 20; i++) {
      looks(talk, 0);
      await talk.before();
    }
    looks(talk, drawn(talk));
    const go = held(g, "/history"), later = talk.after();
    talk.toEnd();
    go();
    await later;
    consecutive(talk, undefined, 19_999);
  },

  async "one message, longer than anything"() {
    const g = new Gateway(10, chunk), talk = g.open();
    await talk.resume();
    g.say(30_000, chunk);
    const all = consecutive(talk, undefined, 30_009);
    if (all.length > 21_000) fail(`${all.length} updates`);
    while (talk.earlier.value) {
      looks(talk, 0);
      await talk.before();
      consecutive(talk);
    }
    consecutive(talk, 0);
  },

  async "one message, longer than anything, of which somebody reads a part"() {
    const g = new Gateway(10, chunk), talk = g.open();
    await talk.resume();
    for (let i = 0; i < 2; i++) { // at the beginning, and in the middle
      const { from } = talk.window, at = from + i * 5000 + 5;
      talk.look({ first: from + 1, last: g.records.length, from: at, to: at + 20 });
      g.say(40_000, chunk);
      const all = consecutive(talk);
      if (all.length > 21_000) fail(`${all.length} updates`);
      same(all.includes(at), true, "what is read is here");
      if (i > 0) break;
      talk.toEnd();
      g.say(15_000, chunk);
    }
    same(talk.later.value, true, "there is more behind");
    for (let last = 0; talk.later.value; ) {
      const [e] = talk.fold.value.entries.value;
      talk.look({ first: e.at, last: e.last, from: e.last - 20, to: e.last });
      await talk.after();
      consecutive(talk);
      if (e.last > last) ({ last } = e);
      else fail("it comes to an end");
    }
    consecutive(talk, undefined, g.records.length - 1);
  },

  async "a text of many characters"() {
    const g = new Gateway(1), talk = g.open(), line = "x".repeat(99) + "\n";
    await talk.resume();
    const said = (n, text) => g.say(n, () => ({ sessionUpdate: "agent_message_chunk", messageId: "long", content: { type: "text", text } }));
    const is = (most, ends) => {
      const m = talk.fold.value.entries.value.at(-1), { text } = m.content[0];
      same(text.length <= most && text.length > most / 2, true, `${text.length} characters`);
      same(m.skipped + text.length , total, "the characters of all");
      same(text.endsWith(ends), true, "the end is here");
      return text;
    };
    let total = 0, shifts = 0;
    talk.shifts = () => shifts++;
    said(5000, line);
    talk.fold.value.flush();
    total += 500_000;
    is(200_000, line);
    const cut = shifts;
    same(cut > 3 && cut < 10, true, `${cut} times it begins anew`);
    looks(talk, 0);
    said(6000, line);
    total += 600_000;
    same(shifts, cut, "it begins anew while somebody reads");
    is(800_000, line);
    said(6000, line);
    total += 600_000;
    is(800_000, line);
    talk.look(null);
    said(1, "```\n");
    total += 4;
    said(2500, line);
    total += 250_000;
    same(is(200_000, line).startsWith("```\nxx"), true, "code is code still");
  },

  async "a history that breaks off"() {
    const g = new Gateway(10), talk = g.open();
    g.halfway = () => { throw new Error("the disk is full"); };
    await talk.resume();
    same(talk.failed.value, "The history is incomplete: the disk is full", "what is said");
    const complete = new Gateway(10, (i) => (i === 4 ? { sessionUpdate: "replay_complete" } : message(i))), other = complete.open();
    complete.halfway = g.halfway;
    await other.resume();
    same(other.failed.value, "the disk is full", "what is said of another failure");
  },

  async "a command that runs for hours"() {
    const g = new Gateway(1), talk = g.open();
    await talk.resume();
    const output = { sessionUpdate: "terminal_output_chunk", terminalId: "t", data: btoa("x\n") };
    g.add({ sessionUpdate: "tool_call_update", toolCallId: "run", title: "Run", content: [{ type: "terminal", terminalId: "t" }] });
    g.add({ sessionUpdate: "terminal_update", terminalId: "t", command: "make", output: { data: btoa("begin\n") } });
    g.say(30_000, () => output);
    g.add({ sessionUpdate: "tool_call_update", toolCallId: "run", status: "completed" });
    g.say(30_000, () => output);
    const is = () => {
      const list = talk.fold.value.entries.value.filter((e) => e.kind !== "message");
      same(list.map((e) => [e.kind, e.call?.title ?? e.command, e.call?.status ?? e.shown]).join("|"), "tool,Run,completed|terminal,make,true", "what is shown");
      same(list[1].text.length < 45_000, true, "the output is that of the window");
      return list[1].text;
    };
    talk.fold.value.flush();
    is();
    while (talk.earlier.value) {
      const { at, last } = talk.fold.value.entries.value[0];
      const from = talk.window.from;
      talk.look({ first: at, last, from, to: from + 1 });
      await talk.before();
      is();
    }
    same(talk.fold.value.entries.value[0].kind, "message", "the first entry");
    same(is().startsWith("begin\nx"), true, "it begins as it did");
  },

  async "messages that are very long"() {
    const g = new Gateway(0), talk = g.open(), long = "x".repeat(100_000);
    const made = (i) => ({ ...message(i), content: [{ type: "text", text: i + " " }, { type: "image", data: long }] });
    await talk.resume();
    g.say(1000, made);
    const weighs = () => JSON.stringify(talk.window.items).length + JSON.stringify(talk.window.end).length;
    const read = () => talk.fold.value.entries.value.map((e) => parseInt(e.content[0].text));
    const follows = () => { talk.fold.value.flush(); read().forEach((n, i, all) => i === 0 || same(n, all[i - 1] + 1, "the next one")); };
    follows();
    if (weighs() > 36e6) fail(`${weighs()} characters`);
    for (let i = 0; talk.earlier.value; i++) {
      if (i > 100) fail("it comes to no end");
      looks(talk, 0);
      g.say(7, made);
      await talk.before();
      follows();
      if (weighs() > 72e6) fail(`${weighs()} characters`);
    }
    same(read()[0], 0, "the first one");
    talk.toEnd();
    follows();
    same(read().at(-1), g.records.length - 1, "the last one");
  },

  async "messages stay whole"() {
    const g = new Gateway(0), talk = g.open();
    await talk.resume();
    for (let i = 0; i < 40; i++) g.say(300, (n) => ({ ...chunk(n), messageId: "m" + Math.floor(n / 300) }));
    const [first] = consecutive(talk, undefined, 11_999);
    same(first > 0, true, "old ones are dropped");
    same(first % 300, 0, "the first one is whole");
  },

  async "what the session is called, after older updates have come"() {
    const g = new Gateway(0);
    const about = (what) => {
      g.add({ sessionUpdate: "session_info_update", title: what });
      g.add({ sessionUpdate: "usage_update", used: what.length, size: 100 });
      g.add({ sessionUpdate: "config_option_update", configOptions: [{ configId: what }] });
      g.add({ sessionUpdate: "available_commands_update", availableCommands: [{ name: what }] });
    };
    about("old");
    for (let i = 0; i < 9000; i++) g.add(message(i));
    about("newer");
    const talk = g.open();
    await talk.resume();
    const is = (what) => {
      const f = talk.fold.value;
      same([f.title.value, f.usage.value.used, f.options.value[0].configId, f.commands.value[0].name].join(), [what, what.length, what, what].join(), "the session");
    };
    is("newer");
    while (talk.earlier.value) {
      looks(talk, 0);
      await talk.before();
      is("newer");
    }
    about("the newest");
    g.add({ sessionUpdate: "state_update", state: "running" });
    g.deliver();
    is("the newest");
    same(talk.later.value, true, "the end is not here");
    same(talk.busy.value, true, "it runs");
    talk.toEnd();
    is("the newest");
    same(talk.busy.value, true, "it runs");
  },

  async "news are what others say"() {
    const g = new Gateway(100), talk = g.open();
    await talk.resume();
    talk.presence({ sessionId: "s", people: [{ name: "me", you: true }, { name: "ann" }] });
    looks(talk, 0);
    const said = (messageId, author, kind = "user_message") => {
      g.add({ sessionUpdate: kind, messageId, content: [], _meta: author ? { [key]: { author } } : undefined });
      g.deliver();
      return talk.news.value;
    };
    same(said("p1"), 0, "after a prompt of nobody who is named");
    same(said("p2", "me"), 0, "after a prompt of this user");
    same(said("p3", "ann"), 1, "after a prompt of somebody else");
    same(said("a1", "", "agent_message"), 2, "after a message of the agent");
  },

  async "the end of a turn, and what was said last"() {
    const g = new Gateway(1, chunk), talk = g.open();
    await talk.resume();
    g.add({ sessionUpdate: "state_update", state: "running" });
    g.deliver();
    const f = talk.fold.value, drawn = [];
    f.entries.value[0].rev.subscribe(() => drawn.push("text"));
    f.entries.subscribe((list) => drawn.push(list.length + " entries"));
    f.state.subscribe((state) => drawn.push(state));
    drawn.length = 0;
    g.say(1, chunk);
    g.add({ sessionUpdate: "state_update", state: "idle", stopReason: "cancelled" });
    g.deliver();
    same(drawn.join(), "2 entries,text,idle", "what is drawn");
  },

  async "a connection that ends during the first replay"() {
    const g = new Gateway(3000), talk = g.open();
    g.halfway = () => { throw new NoConnection(); };
    await talk.resume();
    g.halfway = () => {};
    await talk.resume();
    consecutive(talk, 2600, 2999);
    same(talk.earlier.value, true, "there is more before");
    while (talk.earlier.value) await talk.before();
    consecutive(talk, 0, 2999);
  },

  async "a connection that comes back"() {
    const g = new Gateway(9000), talk = g.open();
    await talk.resume();
    for (const away of [false, true]) {
      while (away && talk.earlier.value) {
        looks(talk, 0);
        await talk.before();
      }
      for (const lacks of [20, 7000]) { // the second one is more than is sent
        for (let i = 0; i < lacks; i++) g.add(message(g.records.length));
        await talk.resume();
        await tick();
        const all = consecutive(talk);
        if (away) same(all[0], 0, "the place");
        else same(all.at(-1), g.records.length - 1, "the end");
      }
      while (talk.later.value) {
        looks(talk, drawn(talk));
        await talk.after();
        consecutive(talk);
      }
      consecutive(talk, undefined, g.records.length - 1);
      talk.look(null);
    }
  },

  async "another session, and back at once"() {
    const g = new Gateway(10), first = g.open();
    await first.resume();
    first.close();
    let leave;
    g.leaving = new Promise((done) => { leave = done; });
    const talk = g.open(), joined = talk.resume();
    await tick();
    g.say(5); // to the client that is leaving
    same(numbers(talk).length, 0, "what is shown of that");
    g.leaving = undefined;
    leave();
    await joined;
    consecutive(talk, 0, 14);
  },

  async "around a place"() {
    const g = new Gateway(20_000), talk = g.open();
    await talk.resume();
    same(await talk.around(8000), true, "it is fetched");
    const all = consecutive(talk);
    same(all.includes(7999), true, "it is there");
    while (talk.later.value) {
      looks(talk, drawn(talk));
      await talk.after();
      consecutive(talk);
    }
    consecutive(talk, undefined, 19_999);
  },

  async "around a place that is not wanted any more"() {
    const g = new Gateway(20_000), talk = g.open();
    await talk.resume();
    const go = held(g, "/history");
    let wanted = true;
    const around = talk.around(8000, () => wanted);
    wanted = false;
    go();
    same(await around, false, "it is fetched");
    consecutive(talk, 19_600, 19_999);
  },

  async "history that was compacted"() {
    const g = new Gateway(9000), talk = g.open();
    await talk.resume();
    for (const fetch of ["before", "after"]) {
      for (let i = 0; fetch === "after" && !talk.later.value && i < 100; i++) {
        looks(talk, 0);
        await talk.before();
      }
      looks(talk, fetch === "after" ? drawn(talk) : 0);
      let refuses = true;
      g.before = (method) => {
        if (method.endsWith("/history") && refuses) throw Object.assign(new Error("compacted"), { data: { reason: "compacted" } });
      };
      const done = talk[fetch]();
      await Promise.resolve();
      refuses = false;
      await done;
      while (talk.fetching.value) await tick();
      g.say(1);
      consecutive(talk, undefined, g.records.length - 1);
      same(drawn(talk), 502, "what is shown");
      same(talk.later.value, false, "there is more behind");
    }
    g.before = (method) => { if (method.endsWith("/history")) throw Object.assign(new Error("compacted"), { data: { reason: "compacted" } }); };
    await talk.before();
    for (let i = 0; i < 10; i++) await tick();
    same(g.asked.filter((a) => a.before !== undefined).length < 60, true, "it ends");
  },
};
