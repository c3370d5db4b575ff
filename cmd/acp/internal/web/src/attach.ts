// Pictures and files that are sent with a prompt.

import type { ContentBlock, PromptCapabilities } from "@agentclientprotocol/sdk/experimental/v2";

// An Attachment is a file of this device.
export interface Attachment {
  key: number;
  name: string;
  size: number; // of what is sent, in bytes
  picture: string; // its URL, if it is one
  block: ContentBlock;
}

// Bounds.
export const maxAttachments = 16;
const maxPicture = 5 << 20; // bytes of a picture as it is sent
const maxSide = 2048; // pixels of its longer side
const maxText = 1 << 20; // bytes of a text file
const maxFile = 64 << 20; // bytes of a picture before it is made smaller

const asIs = ["image/png", "image/jpeg", "image/webp", "image/gif"];

let keys = 0;

// attach reads a file. It fails, with a reason for people, if the file cannot be sent.
export async function attach(file: File, takes: PromptCapabilities): Promise<Attachment> {
  const name = file.name || (file.type.startsWith("image/") ? "picture" : "file");
  if (file.type.startsWith("image/") && file.type !== "image/svg+xml") {
    if (!takes.image) throw new Error(`The agent does not accept pictures: ${name} was not added.`);
    const picture = await shrunk(file, name);
    return {
      key: ++keys, name, size: picture.size, picture: URL.createObjectURL(picture),
      block: { type: "image", data: await base64(picture), mimeType: picture.type },
    };
  }
  if (file.size > maxText) throw new Error(`${name} has more than ${sizeOf(maxText)}: it was not added. Put it into the directory of the session, and mention it with @.`);
  const text = textOf(await file.arrayBuffer());
  if (text === null) throw new Error(`${name} is neither a picture nor text: it was not added.`);
  if (!takes.embeddedContext) throw new Error(`The agent does not accept files: ${name} was not added.`);
  return {
    key: ++keys, name, size: file.size, picture: "",
    block: { type: "resource", resource: { uri: "attachment:///" + encodeURIComponent(name), text, mimeType: file.type || "text/plain" } },
  };
}

// filesOf returns the pictures and files of a prompt, as they were attached.
export function filesOf(content: ContentBlock[]): File[] {
  return content.flatMap((b) => {
    if (b.type === "image") {
      const { data, mimeType } = b as { data: string; mimeType: string };
      return [new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], "", { type: mimeType })];
    }
    if (b.type !== "resource") return [];
    const { uri, text, mimeType } = b.resource as { uri: string; text?: string; mimeType?: string };
    return [new File([text ?? ""], decodeURIComponent(uri.split("/").at(-1) ?? ""), { type: mimeType })];
  });
}

// release frees what shows an attachment.
export function release(a: Attachment) {
  if (a.picture) URL.revokeObjectURL(a.picture);
}

function textOf(data: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

// shrunk returns a picture within the bounds.
async function shrunk(file: File, name: string): Promise<Blob> {
  if (file.size > maxFile) throw new Error(`${name} has more than ${sizeOf(maxFile)}: it was not added.`);
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`This browser cannot read ${name}: it was not added.`);
  }
  try {
    const longer = Math.max(bitmap.width, bitmap.height);
    if (longer <= maxSide && file.size <= maxPicture && asIs.includes(file.type)) return file;
    const scale = Math.min(1, maxSide / longer);
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    const pen = canvas.getContext("2d");
    if (!pen) throw new Error(`This browser cannot make ${name} smaller: it was not added.`);
    const encode = (type: string, quality: number) => new Promise<Blob | null>((done) => canvas.toBlob(done, type, quality));
    pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    if (file.type !== "image/jpeg") {
      const png = await encode("image/png", 1);
      if (png && png.size <= maxPicture) return png;
      pen.globalCompositeOperation = "destination-over"; // a JPEG has no transparency
      pen.fillStyle = "#fff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
    }
    for (const quality of [0.85, 0.7, 0.5]) {
      const jpeg = await encode("image/jpeg", quality);
      if (jpeg && jpeg.size <= maxPicture) return jpeg;
    }
    throw new Error(`${name} has more than ${sizeOf(maxPicture)} even when it is made smaller: it was not added.`);
  } finally {
    bitmap.close();
  }
}

function base64(data: Blob): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => failed(new Error("The file cannot be read."));
    reader.readAsDataURL(data);
  });
}

// sizeOf returns a number of bytes, for people.
export function sizeOf(n: number): string {
  return n < 1 << 10 ? `${n} B` : n < 1 << 20 ? `${Math.round(n / (1 << 10))} KB` : `${Number((n / (1 << 20)).toFixed(1))} MB`;
}

// mentioned returns links to the files that a text mentions, of those that were offered.
export function mentioned(text: string, files: string[], cwd: string): ContentBlock[] {
  const said = namesIn(text);
  const has = (path: string) => said.has(path) || [...said].some((s) => s.startsWith(path) && /^[.,;:!?)\]}']+$/.test(s.slice(path.length)));
  return [...new Set(files)].filter(has).map((path) => ({
    type: "resource_link", name: path.replace(/\/$/, "").split("/").at(-1) ?? path, uri: uriOf(cwd, path),
    ...(path.endsWith("/") ? { mimeType: "inode/directory" } : {}),
  }));
}

// namesIn returns what a text mentions with @.
const namesIn = (text: string) => new Set(Array.from(text.matchAll(/(?:^|[\s(])@(?:"([^"\n]+)"|([^\s"]+))/g), (m) => m[1] ?? m[2]));

// mentionsOf returns the files that a prompt mentions and links to.
export function mentionsOf(content: ContentBlock[], text: string, cwd: string): string[] {
  const links = new Set(content.flatMap((b) => (b.type === "resource_link" ? [(b as { uri: string }).uri] : [])));
  return [...namesIn(text)].filter((path) => links.has(uriOf(cwd, path)));
}

// uriOf returns the file: URI of a path in a directory of the gateway's machine.
function uriOf(cwd: string, path: string): string {
  const all = (path.startsWith("/") ? path : cwd.replace(/[\\/]+$/, "") + "/" + path).replaceAll("\\", "/").replace(/\/$/, "");
  return "file://" + (all.startsWith("/") ? "" : "/") + all.split("/").map((p) => encodeURIComponent(p).replace(/^([A-Za-z])%3A$/, "$1:")).join("/");
}

// written returns a path as a prompt mentions it.
export const written = (path: string) => (/[\s"]/.test(path) ? `@"${path}"` : "@" + path);
