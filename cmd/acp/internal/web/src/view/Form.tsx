import { useRef, useState } from "preact/hooks";
import type { CreateElicitationRequest, CreateElicitationResponse, ElicitationSchema } from "@agentclientprotocol/sdk/experimental/v2";
import { fieldsOf, maxFields, valueOf, type Field, type Value } from "../form";
import { seenCode, seenLine } from "../parts/text";

type Answer = (r: CreateElicitationResponse) => void;

// Form asks the user for input, or to visit an address.
export function Form({ id, request, answer }: { id: string; request: CreateElicitationRequest; answer: Answer }) {
  switch (request.mode) {
    case "form": return <Fields id={id} message={seenCode(String(request.message))} schema={(request as { requestedSchema: ElicitationSchema }).requestedSchema} answer={answer} />;
    case "url": return <Address id={id} message={seenCode(String(request.message))} url={String((request as { url: unknown }).url)} answer={answer} />;
  }
  return (
    <>
      <div class="asked">
        <h3 id={id}>{seenCode(String(request.message))}</h3>
        <p class="bad">The agent asks in a way that this page does not know: {seenLine(String(request.mode))}.</p>
      </div>
      <p class="options"><Refuse answer={answer} /></p>
    </>
  );
}

// Refuse says no, or nothing.
function Refuse({ answer }: { answer: Answer }) {
  return (
    <>
      <button type="button" onClick={() => answer({ action: "decline" })}>Decline</button>
      <button type="button" class="dismiss" onClick={() => answer({ action: "cancel" })}>Dismiss</button>
    </>
  );
}

function Fields({ id, message, schema, answer }: { id: string; message: string; schema: ElicitationSchema; answer: Answer }) {
  const [fields] = useState(() => fieldsOf(schema));
  const [values, set] = useState<Value[]>(() => fields.map((f) => f.value));
  const [wrong, blame] = useState<string[]>([]);
  const form = useRef<HTMLFormElement>(null);
  const shown = fields.slice(0, maxFields);
  const hopeless = fields.find((f, i) => f.required && (f.kind === "unknown" || i >= maxFields));
  const check = (i: number) => {
    const [, problem] = valueOf(fields[i], values[i]);
    if ((wrong[i] ?? "") !== problem) blame(fields.map((_, j) => (j === i ? problem : (wrong[j] ?? ""))));
  };
  const change = (i: number, value: Value) => {
    set((values) => values.map((v, j) => (j === i ? value : v)));
    if (wrong[i]) blame((wrong) => wrong.map((w, j) => (j === i ? valueOf(fields[i], value)[1] : w)));
  };
  const send = (e: Event) => {
    e.preventDefault();
    const all = fields.map((f, i) => valueOf(f, values[i]));
    const problems = all.map(([, problem]) => problem);
    blame(problems);
    const bad = problems.findIndex((p) => p !== "");
    if (bad >= 0) {
      form.current?.querySelector<HTMLElement>(`[data-field="${bad}"]`)?.focus();
      return;
    }
    const content: Record<string, unknown> = {};
    all.forEach(([value], i) => {
      if (value !== undefined) Object.defineProperty(content, fields[i].name, { value, enumerable: true }); // also if it is __proto__
    });
    answer({ action: "accept", content } as CreateElicitationResponse);
  };
  return (
    <form class="form" ref={form} onSubmit={send} noValidate>
      <div class="asked">
      <div>
        <h3 id={id}>{seenCode(schema?.title || message)}</h3>
        {schema?.title && <p class="said">{message}</p>}
        {schema?.description && <p class="said">{seenCode(schema.description)}</p>}
      </div>
      {shown.map((f, i) => <One key={f.name} id={`${id}-${i}`} i={i} f={f} value={values[i]} wrong={wrong[i] ?? ""} change={(v) => change(i, v)} check={() => check(i)} />)}
      {fields.length > maxFields && <p class="bad">{fields.length - maxFields} further fields are not shown.</p>}
      {hopeless && <p class="bad" id={id + "-hopeless"}>This page cannot ask for “{hopeless.title}”, which the agent needs. Decline, or answer in a terminal.</p>}
      </div>
      <p class="options">
        <button class="primary" disabled={!!hopeless} aria-describedby={hopeless ? id + "-hopeless" : undefined}>Submit</button>
        <Refuse answer={answer} />
      </p>
    </form>
  );
}

interface FieldProps {
  id: string;
  i: number;
  f: Field;
  value: Value;
  wrong: string;
  change: (v: Value) => void;
  check: () => void;
}

function One({ id, i, f, value, wrong, change, check }: FieldProps) {
  const bounds = boundsOf(f), about = f.about && bounds ? `${f.about} (${bounds})` : f.about || bounds;
  const described = [about && id + "-about", wrong && id + "-wrong"].filter(Boolean).join(" ") || undefined;
  const label = <>{f.title}{f.required && <span class="needed" title="needed"> *<span class="unseen"> needed</span></span>}</>;
  const common = { id, "data-field": i, "aria-describedby": described, "aria-invalid": wrong ? true : undefined, "aria-required": f.required || undefined } as const;
  const tail = <>{about && <p class="about" id={id + "-about"}>{about}</p>}{wrong && <p class="bad" id={id + "-wrong"} role="alert">{wrong}</p>}</>;
  switch (f.kind) {
    case "unknown": return <div class="field"><p>{label}</p>{about && <p class="about">{about}</p>}<p class="bad">This page cannot ask for a value of type {seenLine(f.type) || "that is not named"}.</p></div>;
    case "boolean": return (
      <div class="field"><label class="tick"><input {...common} type="checkbox" checked={value === true} onChange={(e) => change(e.currentTarget.checked)} /> <span>{label}</span></label>{tail}</div>
    );
    case "some": {
      const chosen = Array.isArray(value) ? value : [];
      return (
        <fieldset class="field" aria-describedby={described}>
          <legend>{label}</legend>
          {f.options.map((o, n) => (
            <Tick key={o.value} title={o.title} about={o.about}>
              <input type="checkbox" data-field={n === 0 ? i : undefined} checked={chosen.includes(o.value)} onChange={(e) => change(f.options.map((x) => x.value).filter((v) => (v === o.value ? e.currentTarget.checked : chosen.includes(v))))} />
            </Tick>
          ))}
          {tail}
        </fieldset>
      );
    }
    case "one":
      if (f.options.length > 7) return (
        <div class="field">
          <label for={id}>{label}</label>
          <select {...common} value={String(value)} onChange={(e) => change(e.currentTarget.value)} onBlur={check}>
            <option value="">{f.required ? "Choose …" : "No answer"}</option>
            {f.options.map((o) => <option key={o.value} value={o.value}>{o.title}</option>)}
          </select>
          {f.options.some((o) => o.value === value && o.about) && <p class="about">{f.options.find((o) => o.value === value)!.about}</p>}
          {tail}
        </div>
      );
      return (
        <fieldset class="field" aria-describedby={described} role="radiogroup" aria-required={f.required || undefined}>
          <legend>{label}</legend>
          {f.options.map((o, n) => (
            <Tick key={o.value} title={o.title} about={o.about}>
              <input type="radio" name={id} data-field={n === 0 ? i : undefined} checked={value === o.value} onChange={() => change(o.value)} />
            </Tick>
          ))}
          {!f.required && <Tick title="No answer" about=""><input type="radio" name={id} checked={value === ""} onChange={() => change("")} /></Tick>}
          {tail}
        </fieldset>
      );
  }
  const long = f.kind === "text" && !f.format && ((f.max ?? 0) >= 500 || String(value).includes("\n"));
  const edit = { value: String(value), onInput: (e: { currentTarget: { value: string } }) => change(e.currentTarget.value), onBlur: () => { if (value !== "") check(); }, autocomplete: "off", spellcheck: false } as const;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {long ? <textarea {...common} {...edit} rows={3} /> : <input {...common} {...edit} {...inputOf(f)} />}
      {tail}
    </div>
  );
}

function Tick({ title, about, children }: { title: string; about: string; children: preact.ComponentChildren }) {
  return <label class="tick">{children} <span>{title}{about && <span class="about">{about}</span>}</span></label>;
}

// inputOf returns what a browser needs to know of a field to help with it. The page checks what was written, not the browser.
function inputOf(f: Field) {
  switch (f.kind === "text" ? f.format : f.kind) {
    case "number": return { type: "text", inputMode: "decimal" } as const;
    case "integer": return { type: "text", inputMode: f.min !== undefined && f.min >= 0 ? "numeric" : "text" } as const;
    case "email": return { type: "text", inputMode: "email", autocapitalize: "off" } as const;
    case "uri": return { type: "text", inputMode: "url", autocapitalize: "off" } as const;
    case "date": return { type: "date" } as const;
    case "date-time": return { type: "datetime-local", step: 1 } as const;
    case "password": return { type: "password" } as const;
  }
  return { type: "text" } as const;
}

// boundsOf says between what a value must be.
function boundsOf({ kind, min, max }: Field): string {
  if (kind === "text" && (min ?? 0) <= 1) min = undefined;
  const between = (unit: string) => (min !== undefined && max !== undefined ? `${min} to ${max}${unit}` : min !== undefined ? `at least ${min}${unit}` : max !== undefined ? `at most ${max}${unit}` : "");
  switch (kind) {
    case "text": return between(" characters");
    case "number": case "integer": return between("");
    case "some": return between(" of these");
  }
  return "";
}

// Address asks the user to visit an address. Nothing is opened but by a click of the user.
function Address({ id, message, url, answer }: { id: string; message: string; url: string; answer: Answer }) {
  const [seen, see] = useState(false);
  const [copied, copy] = useState("");
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const opens = parsed !== null && (parsed.protocol === "https:" || parsed.protocol === "http:");
  const whole = parsed?.href ?? url; // with the name of the host as it is asked for
  return (
    <>
      <div class="asked">
      <h3 id={id}>{message}</h3>
      <p class="said">The agent asks you to visit {opens ? <b class="host">{parsed.host}</b> : "an address"}.</p>
      <p class="address" tabIndex={0} aria-label="Address">{seenLine(whole)}</p>
      {!opens && <p class="bad">Only addresses that begin with http or https can be opened.</p>}
      {opens && (parsed.username || parsed.password) && <p class="bad">What is before the @ is not the name of the host.</p>}
      {opens && parsed.protocol === "http:" && <p class="said">The connection would not be encrypted.</p>}
      {opens && !seen && <p class="said">Accept when you have opened it.</p>}
      </div>
      <p class="options">
        {opens && <a class="button" href={parsed.href} target="_blank" rel="noopener noreferrer" onClick={() => see(true)} onAuxClick={() => see(true)}>Open in a new tab</a>}
        {opens && <button type="button" onClick={() => void navigator.clipboard?.writeText(whole).then(() => { see(true); copy("Copied"); }, () => copy("The browser does not allow that"))}>{copied || "Copy"}</button>}
        <button type="button" class="primary" disabled={!seen} onClick={() => answer({ action: "accept" } as CreateElicitationResponse)}>Accept</button>
        <Refuse answer={answer} />
      </p>
    </>
  );
}
