// Content, as it is in messages and in what tools say.

import type { ContentBlock } from "@agentclientprotocol/sdk/experimental/v2";
import type { ComponentChildren } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { Code } from "./Code";
import { Json } from "./Json";
import { address } from "./lexer";
import { Link, Markdown } from "./Markdown";
import { beginning, size, visible } from "./text";
import { useCut, Whole } from "./whole";

const largest = 32_000_000; // characters of the data of a picture or a sound

export interface BlocksProps {
  content: readonly ContentBlock[];
  /** The last block still grows. */
  live?: boolean;
}

/** Blocks shows content. Nothing that it refers to is loaded. */
export function Blocks({ content, live = false }: BlocksProps) {
  return <>{content.map((c, i) => <BlockView key={i} block={c} live={live && i === content.length - 1} />)}</>;
}

function BlockView({ block, live }: { block: ContentBlock; live: boolean }) {
  const whole = useContext(Whole);
  const b = (block ?? {}) as { type?: unknown; [key: string]: unknown };
  switch (b.type) {
    case "text":
      if (typeof b.text === "string") return <Markdown text={b.text} live={live} />;
      break;
    case "image":
    case "audio":
      if (typeof b.data === "string") return <Media kind={b.type} type={str(b.mimeType)} data={b.data} />;
      break;
    case "resource_link":
      return <ResourceLink link={b} />;
    case "resource":
      if (b.resource !== null && typeof b.resource === "object") return <Resource resource={b.resource as Record<string, unknown>} />;
      break;
  }
  return <details class="other" open={whole}><summary>{visible(beginning(str(b.type) || "content", 80))}</summary><Json value={block} /></details>;
}

function str(v: unknown): string {
  return typeof v === "string" ? v : "";
}

const pictures = /^image\/(?:png|jpeg|gif|webp)$/;
const sounds = /^audio\/(?:aac|flac|mp3|mp4|mpeg|ogg|wav|wave|webm|x-wav)$/;

// Media is a picture or a sound, whose data is in the message. A picture that may have scripts is shown as its text.
function Media({ kind, type, data }: { kind: "image" | "audio"; type: string; data: string }) {
  const name = type.toLowerCase().replace(/;.*/s, "").trim();
  const long = size(Math.floor((data.length * 3) / 4));
  const good = useMemo(() => data.length <= largest && /^[A-Za-z0-9+/\s]*=*\s*$/.test(data), [data]);
  if (good && kind === "image" && pictures.test(name)) {
    return <img class="picture" src={"data:" + name + ";base64," + data} alt={"Picture (" + name.slice(6) + ", " + long + ")"} decoding="async" />;
  }
  if (good && kind === "audio" && sounds.test(name)) {
    return <audio class="sound" controls preload="none" src={"data:" + name + ";base64," + data} aria-label={"Sound (" + name.slice(6) + ", " + long + ")"} />;
  }
  if (good && name === "image/svg+xml") {
    const text = decoded(data);
    if (text !== null) return <details class="other"><summary>Picture (svg, {long})</summary><Code text={text} lang="xml" /></details>;
  }
  return <p class="other">[{kind} {visible(beginning(type, 80))}, {long}]</p>;
}

function decoded(base64: string): string | null {
  try {
    const bytes = atob(base64.replace(/\s/g, ""));
    return new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

// place returns the name of a file that was attached, or the path of one, as people write them.
function place(uri: string): string {
  const [, name] = /^(?:attachment:\/\/\/|file:\/\/(?=\/))([^?#]+)$/.exec(uri) ?? [];
  try {
    return name === undefined ? uri : decodeURIComponent(name);
  } catch {
    return uri;
  }
}

function ResourceLink({ link }: { link: Record<string, unknown> }) {
  const whole = useContext(Whole), cut = useCut();
  const uri = str(link.uri), name = str(link.title) || str(link.name) || uri;
  const href = address(uri, true);
  const about = [str(link.mimeType), typeof link.size === "number" ? size(link.size) : ""].filter((s) => s !== "").join(", ");
  const label = visible(cut(name, 300));
  return (
    <p class="resource">
      {href === null ? <span class="name">{label}</span> : <Link href={href}>{label}</Link>}
      {uri !== name && <span class="uri"> {visible(cut(whole ? uri : place(uri), 1000))}</span>}
      {about !== "" && <span class="about"> ({visible(cut(about, 120))})</span>}
      {str(link.description) !== "" && <span class="about"> {visible(cut(str(link.description), 2000))}</span>}
    </p>
  );
}

function Resource({ resource }: { resource: Record<string, unknown> }) {
  const whole = useContext(Whole), cut = useCut();
  const uri = str(resource.uri), type = str(resource.mimeType);
  let body: ComponentChildren;
  if (typeof resource.text === "string") {
    body = /^text\/(?:x-)?markdown\b/.test(type) ? <Markdown text={resource.text} /> : <Code text={resource.text} lang={language(uri, type)} />;
  } else if (typeof resource.blob === "string") {
    body = <Media kind={type.startsWith("audio/") ? "audio" : "image"} type={type} data={resource.blob} />;
  } else body = <Json value={resource} />;
  return <details class="other" open={whole}><summary>{visible(cut((whole ? uri : place(uri)) || "resource", 1000))}</summary>{body}</details>;
}

// language guesses the language of a file of its name.
function language(uri: string, type: string): string {
  const name = (/[^/\\]*$/.exec(uri.replace(/[?#].*$/s, "")) ?? [""])[0].toLowerCase();
  if (name === "dockerfile" || name === "makefile") return name;
  const end = /\.([a-z0-9+]{1,8})$/.exec(name);
  if (end) return end[1]!;
  return (/^(?:text|application)\/(?:x-)?([a-z0-9+]{1,12})/.exec(type) ?? ["", ""])[1]!;
}
