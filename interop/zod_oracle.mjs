// The validators the official TypeScript SDK generates from the schema, as a service on
// standard input and output. Started as `node zod_oracle.mjs PROFILE`, where PROFILE is v1,
// v1u, v2 or v2u (u: with the unstable additions).
//
//   node zod_oracle.mjs PROFILE --list    prints the type names, one a line
//
// Otherwise each input line is a type name, a space and a JSON value; each output line, in
// the same order, is "+" and what the validator keeps of the value, or "-" and the reason
// why it refuses it. A value kept as nothing at all (undefined) is "+" alone.

const dirs = { v1: "v1/schema", v1u: "v1/unstable/schema", v2: "v2/schema", v2u: "v2/unstable/schema" };
const [profile, flag] = process.argv.slice(2);
if (!dirs[profile]) {
  console.error(`unknown profile ${profile}`);
  process.exit(2);
}
// The package exports no validators, so the file is named.
const file = new URL(`node_modules/@agentclientprotocol/sdk/dist/${dirs[profile]}/zod.gen.js`, import.meta.url);
const validators = await import(file.href);

if (flag === "--list") {
  const names = Object.keys(validators).filter((name) => /^z[A-Z]/.test(name));
  console.log(names.map((name) => name.slice(1)).join("\n"));
  process.exit(0);
}

function judge(line) {
  const cut = line.indexOf(" ");
  const name = line.slice(0, cut);
  const validator = validators[`z${name}`];
  if (!validator) return `-no type ${name}`;
  const result = validator.safeParse(JSON.parse(line.slice(cut + 1)));
  if (result.success) return `+${JSON.stringify(result.data) ?? ""}`;
  const [issue] = result.error.issues;
  return `-${issue.path.join(".")}: ${issue.message}`.replaceAll("\n", " ");
}

// node:readline also ends lines at U+2028, which JSON strings may hold, so lines are cut here.
const decoder = new TextDecoder();
let pending = "";
for await (const chunk of process.stdin) {
  const lines = (pending + decoder.decode(chunk, { stream: true })).split("\n");
  pending = lines.pop();
  let out = "";
  for (const line of lines) {
    try {
      out += judge(line) + "\n";
    } catch (err) {
      out += `-threw ${String(err.message).replaceAll("\n", " ")}\n`;
    }
  }
  if (!process.stdout.write(out)) await new Promise((resolve) => process.stdout.once("drain", resolve));
}
