// What both sides of the TypeScript SDK share; the Go twin is messages.go.
import fs from "node:fs";
import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";

const texts = new URL("../texts/", import.meta.url);
const codeText = fs.readFileSync(new URL("code.txt", texts), "utf8");
const plainText = fs.readFileSync(new URL("plain.txt", texts), "utf8");

export const promptText = "Fix the failing test in parser_test.go, please.";
export const diffPath = "/home/user/project/internal/window/ring.go";
const diffSize = 10_000;
const maxMessageBytes = 128 << 20;

const fill = (text, n) => Buffer.from(text.repeat(Math.floor(n / text.length) + 1).slice(0, n)).toString(); // flat, not a rope
export const fileText = (kind, n) => fill(kind === "code" ? codeText : plainText, n);
export const chunkText = (n) => fill("the quick brown fox, then ", n);
export const diffTexts = () => { const s = fill(codeText, diffSize); return [s.slice(0, diffSize / 2), s.slice(diffSize / 2)]; };
export const sessionId = (i) => `sess-6f1c2a9e-${String(i).padStart(6, "0")}`;

export function parseCommand(text) {
  if (!text?.startsWith("!")) return undefined;
  const [verb, n, arg] = text.slice(1).split(" ");
  return { verb, n: Number(n ?? 0), arg };
}

export const nodeStream = (output, input) =>
  ndJsonStream(Writable.toWeb(output), Readable.toWeb(input), { maxMessageBytes });

/** CPU time in microseconds, as the Go processes report it. */
export function processStats() {
  const { user, system } = process.cpuUsage();
  return { cpu: user + system };
}

/** What the process holds, as the Go processes report it. */
export function restStats() {
  const { heapUsed, rss } = process.memoryUsage();
  let files = 0;
  try { files = fs.readdirSync("/proc/self/fd").length - 1; } catch { /* not Linux */ }
  return { heap: heapUsed, rss, files };
}
