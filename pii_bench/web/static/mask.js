// The Mask page. The text and the mapping are stored only in this tab (sessionStorage).
import { element, headers, send } from "/static/request.js";

const KEPT_HERE = "pii-bench-mask";
const EXAMPLE = {
  text: `Dear Dr Meyer,

my name is Hannah Okafor, I was born on 14 March 1987 and live at 12 Harbour Street, Leeds. My \
appointment at St James Clinic is on 3 June at 9:30 am. Since last week my left knee hurts when I \
climb stairs. You can call me on +44 113 496 0123 or write to hannah.okafor@mail.example.org. My \
employer, Northwind Logistics, needs a note; my employee ID is NW-20417.

Kind regards
Hannah Okafor`,
  query: "When is my appointment, and what should I ask about my knee?",
};

const find = (id) => document.getElementById(id);
const form = find("source");
const [text, query, marks, prompt] = ["text", "query", "marks", "prompt"].map(find);

/** The masked text with its entities and the response; null before the first one. */
let work = null;
let past = [];
let future = [];

// Messages.

function say(message, kind = "") {
  find("said").className = kind;
  find("said").textContent = message;
}

function remember() {
  const now = { text: text.value, query: query.value, work, answer: find("answer").value };
  try {
    sessionStorage.setItem(KEPT_HERE, JSON.stringify(now));
  } catch {
    // The storage is full: a reload will lose the text.
  }
}

// Masking.

async function run() {
  if (!text.value.trim()) return complain(text, "Paste a text first.");
  if (!query.value.trim()) return complain(query, "Write your question: it decides what stays readable.");
  const most = Number(form.dataset.most);
  const length = Array.from(text.value).length;
  if (length > most) return complain(text, `The text has ${length} characters; at most ${most}.`);
  const asked = { text: text.value, query: query.value };
  find("run").disabled = true;
  say("Reading your text ...");
  try {
    const long = length > Number(form.dataset.piece);
    const answer = long ? await stream(asked) : await send("/mask", asked);
    work = { ...asked, entities: answer.entities, keep: answer.needed, answer };
    past = [];
    future = [];
    show();
    say(answer.undecided ? "The system did not decide what you need: everything is masked." : "Done.");
    if (matchMedia("(max-width: 56rem)").matches) find("result").scrollIntoView();
  } catch (error) {
    say(error.message, "error");
  } finally {
    find("run").disabled = false;
    find("progress").hidden = true;
  }
}

function complain(field, message) {
  say(message, "error");
  field.focus();
}

/** Mask a long text piece by piece and show the progress. */
function stream(asked) {
  const bar = find("progress");
  bar.removeAttribute("value");
  bar.hidden = false;
  return new Promise((resolve, reject) => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/mask/stream`);
    socket.onopen = () => socket.send(JSON.stringify(asked));
    socket.onclose = () => reject(new Error("The connection was closed before the end."));
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.result) resolve(message.result);
      else if (message.error) reject(new Error(message.error.message));
      else {
        bar.max = message.of;
        bar.value = message.piece;
        say(`Read ${message.piece} of ${message.of} pieces ...`);
      }
    };
  });
}

/** Mask again with other choices, without the system. */
async function change(entities, keep) {
  past.push({ entities: work.entities, keep: work.keep });
  future = [];
  await apply(entities, keep);
}

async function apply(entities, keep) {
  // Set at once, so that the next click builds on it; only the last response is shown.
  const mine = (work = { ...work, entities, keep });
  try {
    const answer = await send("/mask", { text: work.text, query: work.query, entities, keep });
    if (work !== mine) return;
    work = { ...work, answer };
    show();
  } catch (error) {
    say(error.message, "error");
  }
}

async function step(from, to) {
  if (!from.length) return;
  to.push({ entities: work.entities, keep: work.keep });
  const { entities, keep } = from.pop();
  await apply(entities, keep);
}

// Display.

const fold = (value) => value.normalize("NFKC").toLowerCase().split(/\s+/).join(" ").trim();

function kindOf(type) {
  return document.querySelector(`#kinds input[value="${CSS.escape(type)}"]`) ? type : "";
}

function show() {
  const { answer } = work;
  find("empty").hidden = find("back-empty").hidden = true;
  find("found").hidden = find("back-form").hidden = false;
  const focused = marks.contains(document.activeElement) ? document.activeElement.dataset.at : null;
  const points = Array.from(work.text);
  const parts = [];
  let end = 0;
  for (const span of answer.spans) {
    parts.push(points.slice(end, span.start).join(""), mark(points, span));
    end = span.end;
  }
  marks.replaceChildren(...parts, points.slice(end).join(""));
  if (focused !== null) marks.querySelector(`[data-at="${focused}"]`)?.focus();
  if (!answer.spans.length) marks.append(element("p", { class: "muted" }, "Nothing was found."));
  prompt.textContent = `${answer.masked}\n\n${work.query}`;
  showKinds();
  const tags = answer.spans.filter((span) => span.tag).length;
  const left = answer.spans.length - tags;
  find("counts").textContent = `${tags} masked, ${left} left readable`;
  warn();
  find("undo").disabled = !past.length;
  find("redo").disabled = !future.length;
  unmaskAnswer();
  remember();
}

function mark(points, span) {
  const written = points.slice(span.start, span.end).join("");
  const becomes = span.tag ? `masked as ${span.tag}` : "left readable";
  return element(
    "button",
    {
      type: "button",
      class: `mark ${(kindOf(span.type) || "other").toLowerCase()}`,
      "aria-pressed": String(Boolean(span.tag)),
      "aria-label": `${written}, ${becomes}`,
      title: becomes,
      "data-at": span.start,
      onclick: () => toggle(span, written),
    },
    written,
  );
}

/** The entities with the text of a mark, else those that contain it. */
function entitiesOf(written) {
  const own = fold(written);
  const same = work.entities.filter((each) => fold(each.text) === own);
  return same.length ? same : work.entities.filter((each) => fold(each.text).includes(own));
}

function toggle(span, written) {
  const meant = new Set([written, ...entitiesOf(written).map((each) => each.text)].map(fold));
  const others = work.keep.filter((each) => !meant.has(fold(each)));
  const texts = entitiesOf(written).map((each) => each.text);
  change(work.entities, span.tag ? [...others, ...texts] : others);
}

function ofKind(kind) {
  return work.entities.filter((each) => kindOf(each.type) === kind);
}

function showKinds() {
  const kept = new Set(work.keep.map(fold));
  for (const input of document.querySelectorAll("#kinds input")) {
    const own = ofKind(input.value);
    const masked = own.filter((each) => !kept.has(fold(each.text))).length;
    input.closest("label").hidden = !own.length;
    input.checked = masked > 0;
    input.indeterminate = masked > 0 && masked < own.length;
    input.nextElementSibling.nextElementSibling.textContent = `${masked}/${own.length}`;
  }
}

function switchKind(input) {
  const own = new Set(ofKind(input.value).map((each) => fold(each.text)));
  const others = work.keep.filter((each) => !own.has(fold(each)));
  const texts = ofKind(input.value).map((each) => each.text);
  change(work.entities, input.checked ? others : [...others, ...texts]);
}

function warn() {
  const asked = fold(work.query);
  const hidden = Object.values(work.answer.mapping).map((texts) => texts[0]);
  const shown = hidden.filter((each) => asked.includes(fold(each))).length;
  find("in-query").hidden = !shown;
  find("in-query").textContent = `Your question contains ${shown} of the masked values. The question is not masked.`;
}

function selected() {
  const selection = getSelection();
  if (!work || selection.isCollapsed || !marks.contains(selection.anchorNode)) return "";
  return marks.contains(selection.focusNode) ? selection.toString().trim() : "";
}

// Unmasking.

let waiting;
async function unmaskAnswer() {
  clearTimeout(waiting);
  const value = find("answer").value;
  if (!work || !value.trim()) return restored("", []);
  waiting = setTimeout(async () => {
    try {
      const body = { text: value, mapping: work.answer.mapping };
      const answer = await send("/unmask", body);
      restored(answer.text, answer.inexact);
    } catch (error) {
      restored("", []);
      say(error.message, "error");
    }
  }, 120);
}

function restored(value, inexact) {
  find("restored").textContent = value;
  find("copy-restored").disabled = !value;
  find("inexact").hidden = !inexact.length;
  find("inexact").textContent = `Not among your tags, so not replaced: ${inexact.join(", ")}`;
}

async function copy(value, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(value);
    button.textContent = "Copied";
    say("Copied.");
  } catch {
    say("The browser did not allow copying: select the text and copy it yourself.", "error");
  }
  setTimeout(() => (button.textContent = label), 1500);
}

// Files.

async function open(file) {
  const ending = file.name.match(/\.[a-z0-9]{1,8}$/i)?.[0].toLowerCase() ?? "";
  const most = Number(form.dataset.mostBytes);
  if (file.size > most) return say(`The file is larger than ${most / 1e6} MB.`, "error");
  say("Reading the file ...");
  try {
    const own = { "X-File-Ending": ending, "Content-Type": "application/octet-stream" };
    const answer = await fetch("/mask/file", { method: "POST", headers: { ...headers(), ...own }, body: file });
    const value = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(value.error?.message ?? `the server answered ${answer.status}`);
    text.value = value.text;
    say(["The file's text is in the box. Now your question.", ...value.notes].join(" "));
    query.focus();
    remember();
  } catch (error) {
    say(`The file cannot be read: ${error.message}`, "error");
  }
}

// Event handlers.

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
});
find("choose").addEventListener("click", () => find("file").click());
find("file").addEventListener("change", (event) => {
  if (event.target.files[0]) open(event.target.files[0]);
  event.target.value = "";
});
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
}
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) form.classList.remove("over");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  form.classList.remove("over");
  if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
});
find("example").addEventListener("click", () => {
  text.value = EXAMPLE.text;
  query.value = EXAMPLE.query;
  run();
});
find("clear").addEventListener("click", () => {
  sessionStorage.removeItem(KEPT_HERE);
  work = null;
  past = [];
  future = [];
  form.reset();
  find("answer").value = "";
  marks.replaceChildren();
  prompt.textContent = "";
  restored("", []);
  find("empty").hidden = find("back-empty").hidden = false;
  find("found").hidden = find("back-form").hidden = true;
  say("Everything is cleared.");
  text.focus();
});
find("kinds").addEventListener("change", (event) => switchKind(event.target));
find("undo").addEventListener("click", () => step(past, future));
find("redo").addEventListener("click", () => step(future, past));
document.addEventListener("selectionchange", () => {
  find("add").disabled = !selected();
});
find("add").addEventListener("click", () => {
  const value = selected();
  getSelection().removeAllRanges();
  const known = entitiesOf(value).some((each) => fold(each.text) === fold(value));
  const entities = known ? work.entities : [...work.entities, { text: value, type: "OTHER" }];
  change(entities, work.keep.filter((each) => fold(each) !== fold(value)));
});
find("copy").addEventListener("click", (event) => copy(prompt.textContent, event.target));
find("copy-restored").addEventListener("click", (event) => {
  copy(find("restored").textContent, event.target);
});
find("answer").addEventListener("input", () => {
  unmaskAnswer();
  remember();
});
for (const field of [text, query]) field.addEventListener("input", remember);

const kept = JSON.parse(sessionStorage.getItem(KEPT_HERE) ?? "null");
if (kept) {
  text.value = kept.text;
  query.value = kept.query;
  find("answer").value = kept.answer;
  work = kept.work;
  if (work) show();
}
