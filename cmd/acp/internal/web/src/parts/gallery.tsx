// A page that shows every part with content that is awkward, for tests: of how the parts look, whether they can be
// used by everybody, and whether anything that is sent comes alive. It is no part of the page that is served.

import type { ContentBlock, DiffChange, ToolCallContent } from "@agentclientprotocol/sdk/experimental/v2";
import { render } from "preact";
import { Ansi } from "./Ansi";
import { Blocks } from "./Blocks";
import { Code } from "./Code";
import { Diff } from "./Diff";
import { Json } from "./Json";
import { Link, Markdown } from "./Markdown";
import { PlanView } from "./Plan";
import { type TerminalState, TerminalView } from "./Terminal";
import { type ToolCall, ToolView } from "./Tool";
import { Usage } from "./Usage";

const fence = "```";

const markdown = `# What was done

The **first** paragraph with *emphasis*, \`code\`, ~~struck~~ text, a [link](https://example.com/a?b=c&d=e "title"), an
address https://example.com/long/${"path/".repeat(30)} and one that lies: [https://good.example](https://evil.example/).
Entities: &lt;b&gt; &amp; &copy; &#x1F600; &nope;. A relative [file](src/main.go#L3), a [script](javascript:alert(1)).

1. one
2. two
   - nested \`list\`
     > a quote in it

- [x] done
- [ ] to do

| Name | Count | What |
|:-----|------:|:----:|
| \`a\` | 1 | ${"a long cell that makes the table wide ".repeat(5)} |
| b \\| c | 22 | **x** |

${fence}go
// Package main does it.
package main

import "fmt"

func main() { fmt.Println("hello", 42, '\\n') } // ${"long ".repeat(40)}
${fence}

![a picture](https://example.com/p.png) ![local](p.png)

<b onclick="alert(1)">HTML is text</b> <script>alert(1)</script>

<details><summary>also</summary>as a block</details>

> A quote
>
> > in a quote

---

עברית and العربية and 中文 and 👩‍👩‍👧 and \u202eoverride\u202c and ${"unbroken".repeat(40)}

${fence}python
def open(): # not closed
    return None`;

const e = "\x1b[";
const output = [
  `${e}1mbold${e}0m ${e}2mdim${e}0m ${e}3mitalic${e}0m ${e}4munderline${e}0m ${e}7mreverse${e}0m ${e}9mstruck${e}0m`,
  ...[30, 40, 90, 100].map((base) => [0, 1, 2, 3, 4, 5, 6, 7].map((i) => `${e}${base + i}mcolour ${base + i}${e}0m`).join(" ")),
  [16, 21, 46, 51, 93, 196, 201, 226, 231, 240, 250].map((i) => `${e}38;5;${i}m${i}${e}0m ${e}48;5;${i}m${i}${e}0m`).join(" "),
  `${e}38;2;255;255;0myellow${e}0m ${e}38;2;20;20;40mdark${e}0m ${e}41;97m FAIL ${e}0m ${e}38;2;99;99;99;48;2;100;100;100mthe same${e}0m`,
  `10%\r50%\r${e}32m100%${e}0m ok`, `\x1b]8;;https://evil.example/\x07a link\x1b]8;;\x07 ${e}2J${e}H and \x1b]0;title\x07more`,
  "tab\tstop " + "wide ".repeat(60), "",
].join("\r\n");

const patch = `diff --git a/src/main.go b/src/main.go
index 1..2 100644
--- a/src/main.go
+++ b/src/main.go
@@ -1,7 +1,9 @@
 package main
 
-import "fmt"
+import (
+	"fmt"
+)
 
-func main() { fmt.Println("hello", 42) }
+func main() { fmt.Println("hello, world", 43) }
 // The end ${"of a long line ".repeat(20)}
-	last
\\ No newline at end of file
+	last
diff --git a/new file.txt b/new file.txt
new file mode 100644
--- /dev/null
+++ b/new file.txt
@@ -0,0 +1,2 @@
+one <script>alert(1)</script>
+two \u202etricky
`;

const changes = [
  { operation: "modify", path: "/home/user/project/src/main.go" },
  { operation: "add", path: "/home/user/project/new file.txt" },
  { operation: "delete", path: "/home/user/project/" + "long-name-".repeat(20) + ".txt" },
  { operation: "move", oldPath: "/home/user/a.txt", path: "/home/user/b.txt" },
] as DiffChange[];

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const blocks = [
  { type: "text", text: "A short text." },
  { type: "image", mimeType: "image/png", data: pixel },
  { type: "image", mimeType: "image/svg+xml", data: btoa('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>') },
  { type: "image", mimeType: "image/tiff", data: "AAAA" },
  { type: "audio", mimeType: "audio/wav", data: "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=" },
  { type: "resource_link", name: "main.go", uri: "file:///home/user/main.go", mimeType: "text/x-go", size: 1234, description: "The program" },
  { type: "resource_link", name: "a page", uri: "https://example.com/" },
  { type: "resource", resource: { uri: "file:///home/user/a.json", mimeType: "application/json", text: '{"a": 1}' } },
  { type: "_other", data: { a: [1, "two", null] } },
] as ContentBlock[];

const value = {
  string: "text", long: "x".repeat(3000), lines: "one\ntwo\nthree", number: 12.5, none: null, yes: true, empty: {}, list: [],
  deep: { a: { b: { c: { d: { e: [[[]]] } } } } }, many: Array.from({ length: 450 }, (_, i) => i), "a \u202e key": "\u200b",
};

const terminals: Record<string, TerminalState> = {
  running: { command: "go test ./... " + "-run 'a long name' ".repeat(8), cwd: "/home/user/project", text: output, skipped: 0, exit: null },
  failed: { command: "make", cwd: "", text: "make: *** [all] Error 2\n", skipped: 1200, exit: { exitCode: 2 } },
  killed: { command: "sleep 100", cwd: "/", text: "", skipped: 0, exit: { signal: "SIGKILL" } },
  long: { command: "seq 1000", cwd: "", text: Array.from({ length: 1000 }, (_, i) => i + 1).join("\n") + "\n", skipped: 0, exit: { exitCode: 0 } },
};

const content = (...list: unknown[]) => list as ToolCallContent[];

const calls: ToolCall[] = [
  { toolCallId: "1", title: "Read main.go", kind: "read", status: "completed", locations: [{ path: "/home/user/main.go", line: 3 }], rawInput: { path: "main.go" } },
  { toolCallId: "2", title: "Edit files", name: "edit_file", kind: "edit", status: "completed", content: content({ type: "diff", changes, patch: { format: "git_patch", text: patch } }) },
  { toolCallId: "3", title: "Run the tests", kind: "execute", status: "in_progress", content: content({ type: "terminal", terminalId: "running" }) },
  { toolCallId: "4", title: "Fetch", kind: "fetch", status: "failed", content: content({ type: "content", content: { type: "text", text: "404 **not found**" } }), rawOutput: { status: 404 } },
  { toolCallId: "5", kind: "switch_mode", status: "pending" },
  { toolCallId: "6", title: "A very long title ".repeat(10), kind: "_own", status: "_own" },
];

const section = (name: string, ...children: preact.ComponentChild[]) => <section id={name}><h3>{name}</h3>{children}</section>;

/** Gallery shows every part. */
function Gallery() {
  return (
    <main>
      <h1>acp</h1>
      <h2>Parts</h2>
      {section("markdown", <Markdown text={markdown} live />)}
      {section("code", <Code text={"const a: number = 1; // one\nconst b = `x ${a}`;"} lang="ts" />, <Code text="plain" />)}
      {section("ansi", <Ansi text={output} />)}
      {section("diff", <Diff changes={changes} patch={{ format: "git_patch", text: patch }} />, <Diff changes={[]} patch={{ format: "_other", text: "not a patch" }} />)}
      {section("json", <Json value={value} />, <Json text={'{"a": 1.00000000000000000001, "a": 2}'} />, <Json text="not JSON" />)}
      {section("blocks", <Blocks content={blocks} />)}
      {section("plan", <PlanView plan={{ type: "items", entries: [
        { content: "Look", status: "completed", priority: "low" }, { content: "Work", status: "in_progress", priority: "high" },
        { content: "Test " + "everything ".repeat(20), status: "pending", priority: "medium" }, { content: "Rest", status: "cancelled", priority: "low" }] }} />,
        <PlanView plan={{ type: "_own", x: 1 }} removed />)}
      {section("terminal", ...Object.values(terminals).map((t) => <TerminalView terminal={t} />))}
      {section("tool", ...calls.map((c) => <ToolView call={c} terminals={(id) => terminals[id]} />))}
      {section("usage", <Usage usage={{ used: 45_000, size: 200_000, cost: { amount: 0.1234, currency: "USD" } }} />, " ",
        <Usage usage={{ used: 199_000, size: 200_000, cost: { amount: 3, currency: "credits" } }} />)}
    </main>
  );
}

/** Filled shows every part with one text in all places that an agent or another client can fill. */
function Filled({ text: t }: { text: string }) {
  const terminal: TerminalState = { command: t, cwd: t, text: t, skipped: 1, exit: { signal: t } };
  const base64 = btoa(String.fromCharCode(...new TextEncoder().encode(t)));
  const all = [
    { type: "text", text: t }, { type: "image", mimeType: t, data: t }, { type: "image", mimeType: "image/svg+xml", data: base64 },
    { type: "image", mimeType: "image/png", data: base64 }, { type: "image", mimeType: "image/png", data: t, uri: t }, { type: "audio", mimeType: t, data: t },
    { type: "resource_link", name: t, uri: t, title: t, description: t, mimeType: t }, { type: "resource_link", name: "n", uri: "https:" + t },
    { type: "resource", resource: { uri: t, mimeType: t, text: t } }, { type: "resource", resource: { uri: t, mimeType: "text/markdown", text: t } },
    { type: "resource", resource: { uri: t, mimeType: t, blob: base64 } }, { type: t, [t]: t },
  ] as ContentBlock[];
  const change = [{ operation: t, path: t, oldPath: t, fileType: t }, { operation: "move", path: t, oldPath: t }] as DiffChange[];
  const line = t.replace(/\n/g, " ");
  const git = `diff --git a/${line} b/${line}\n--- a/${line}\n+++ b/${line}\n@@ -1,2 +1,2 @@\n ${line}\n-old ${line} a\n+new ${line} b\n`;
  const call: ToolCall = {
    toolCallId: t, title: t, name: t + " ", kind: t, status: "failed", locations: [{ path: t, line: 1 }], rawInput: { [t]: t }, rawOutput: [t],
    content: [
      ...all.map((c) => ({ type: "content", content: c })), { type: "diff", changes: change, patch: { format: "git_patch", text: git } },
      { type: "diff", changes: change, patch: { format: t, text: t } }, { type: "terminal", terminalId: t }, { type: "terminal", terminalId: "known" }, { type: t, [t]: t },
    ] as ToolCallContent[],
  };
  return (
    <main>
      <Blocks content={all} live />
      <ToolView call={call} terminals={(id) => (id === "known" ? terminal : undefined)} />
      <ToolView call={{ ...call, kind: null, status: t }} terminals={() => undefined} />
      {[`[x](${t})`, `[x](<${t}>)`, `![${t}](${t} "${t}")`, `<${t}>`, `[x]: ${t}\n\n[x]`, `[${t}](https://a.example/${t})`, `| ${t} |\n|-|\n| ${t} |`, `# ${t}`, `- [ ] ${t}`, `> ${t}`, "`" + t + "`",
        "```" + t + "\n" + t + "\n```", "```html\n" + t + "\n```", `**${t}**`, `<div>\n${t}\n</div>`, `<a href="${t}">x</a>`, `<svg>${t}</svg>`].map((m) => <Markdown text={m} />)}
      <Code text={t} lang={t} /><Code text={t} lang="html" /><Code text={t} lang="markdown" /><Code text={t} lang="js" />
      <Ansi text={t} /><Ansi text={`\x1b]8;;${t}\x07${t}\x1b]8;;\x07\x1b[${t}m${t}`} />
      <Json value={{ [t]: [t, { t }] }} /><Json text={t} />
      <PlanView plan={{ type: "items", entries: [{ content: t, status: t, priority: t }] }} /><PlanView plan={{ type: "markdown", content: t }} /><PlanView plan={{ type: t }} />
      <Usage usage={{ used: 1, size: 2, cost: { amount: 1, currency: t } }} /><Usage usage={{ used: t as never, size: t as never, cost: { amount: t as never, currency: t } }} />
      <Link href="https://example.com/" title={t}>x</Link>
    </main>
  );
}

const page = document.getElementById("page")!;

/** What a test calls. */
Object.assign(globalThis, {
  gallery: {
    /** show shows every part. */
    show: () => render(<Gallery />, page),
    /** fill shows every part with a text in all places. */
    fill: (text: string) => {
      render(null, page);
      render(<Filled text={text} />, page);
      // What is closed holds as much as what is open.
      for (let i = 0; i < 3; i++) for (const d of page.querySelectorAll("details")) d.open = true;
    },
    /** grow shows a text as it arrives, and returns how often a block that was there was made anew. */
    grow: (text: string, step: number) => {
      render(null, page);
      let made = 0;
      const kept: Element[] = [];
      for (let at = step; ; at += step) {
        render(<Markdown text={text.slice(0, at)} live={at < text.length} />, page);
        const now = [...page.querySelectorAll(".markdown > *")];
        kept.slice(0, -3).forEach((old, i) => (made += old === now[i] ? 0 : 1));
        kept.splice(0, kept.length, ...now);
        if (at >= text.length) return made;
      }
    },
    markdown, output, patch,
  },
});

(globalThis as unknown as { gallery: { show(): void } }).gallery.show();
