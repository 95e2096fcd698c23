// Stage 1: mark what is personal.

import { element, send } from "/static/request.js";
import { isTyping, openTask, status } from "/static/saving.js";
import { Characters, TYPES, TYPE_WORDS, colour, showText } from "/static/marked_text.js";

const CATEGORIES = {};
for (const row of document.querySelectorAll("#guidelines .types > div")) {
  CATEGORIES[row.querySelector("dt").textContent.trim()] = row.querySelector("dd").textContent.trim().split(", ");
}
const LETTERS = Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ");

const byId = (id) => document.getElementById(id);

openTask((saving, state) => {
  const characters = new Characters(state.text);
  const { tokens } = state;
  const text = byId("text");
  const category = byId("category");
  let marks = [];
  let nodes = [];
  // The selection, as token numbers: `head` moves, `anchor` stays.
  let anchor = null;
  let head = null;
  let persons = ["A"];

  const textOf = (mark) => characters.slice(mark.start, mark.end);
  const bounds = () => [Math.min(anchor, head), Math.max(anchor, head)];
  const selected = () => {
    if (head === null) return null;
    const [first, last] = bounds();
    return { start: tokens[first][0], end: tokens[last][1] };
  };
  /** The mark that contains the selection. */
  const current = () => {
    const span = selected();
    return span && marks.find((mark) => mark.start <= span.start && span.end <= mark.end);
  };
  /** A mark, and with "all occurrences" the others with the same text, type and persons. */
  const alike = (mark) => marks.filter((each) => each === mark || (byId("all").checked
    && textOf(each) === textOf(mark) && each.type === mark.type
    && each.persons.join() === mark.persons.join()));

  const change = (changed) => {
    const sorted = [...changed].sort((a, b) => a.start - b.start);
    saving.change({ ...saving.answer, marks: sorted });
  };
  const replace = (old, make) => change(marks.map((mark) => (old.includes(mark) ? { ...mark, ...make(mark) } : mark)));

  function select(first, last, { focus = false } = {}) {
    anchor = first;
    head = last;
    const mark = current();
    if (mark) persons = [...mark.persons];
    paint();
    nodes[head]?.scrollIntoView({ block: "nearest" });
    if (focus) text.focus({ preventScroll: true });
  }

  function selectMark(mark, options) {
    const first = tokens.findIndex((token) => token[0] === mark.start);
    const last = tokens.findIndex((token) => token[1] === mark.end);
    select(first, last, options);
  }

  function apply(type) {
    saving.marking = Promise.all([saving.marking, mark(type)]);
  }

  async function mark(type) {
    const span = selected();
    if (!span || saving.state.closed) return;
    const marked = current();
    if (marked) {
      const own = alike(marked);
      if (marked.type !== type) replace(own, () => ({ type, category: defaultCategory(type, marked) }));
    } else {
      let places = [[span.start, span.end]];
      if (byId("all").checked) {
        status("Saving…");
        try {
          places = (await send(`${saving.url}/occurrences`, span)).spans;
        } catch (error) {
          status(`Marked only here: ${error.message}`, true);
        }
      }
      const free = ([start, end]) => (start === span.start && end === span.end)
        || !marks.some((each) => each.start < end && start < each.end);
      const added = places.filter(free).map(([start, end]) => ({
        start, end, persons: [...persons], type, category: null, origin: "hand",
      }));
      const initial = defaultCategory(type, added[0]);
      for (const each of added) each.category = initial;
      const kept = marks.filter((each) => !added.some((m) => each.start < m.end && m.start < each.end));
      change([...kept, ...added]);
    }
    paint();
    if (current() && !current().category) category.focus();
  }

  /** The category of another mark with the same text; for names else "Full Name". */
  function defaultCategory(type, mark) {
    const other = marks.find((each) => each.type === type && each.category && textOf(each) === textOf(mark));
    return other?.category ?? (type === "PER" ? "Full Name" : null);
  }

  function setPersons(letters) {
    persons = letters.length ? [...letters].sort() : persons;
    const mark = current();
    if (mark) replace(alike(mark), () => ({ persons: [...persons] }));
    else paint();
  }

  function remove() {
    const mark = current();
    if (!mark) return;
    const own = alike(mark);
    change(marks.filter((each) => !own.includes(each)));
  }

  function step(direction) {
    if (!marks.length) return;
    const place = selected()?.start ?? -1;
    const order = direction > 0 ? marks : [...marks].reverse();
    const next = order.find((mark) => (direction > 0 ? mark.start > place : mark.start < place)) ?? order[0];
    selectMark(next);
  }

  /** Names of the persons: the first marked name of each. */
  function known() {
    const used = new Set(marks.flatMap((mark) => mark.persons));
    persons.forEach((letter) => used.add(letter));
    return LETTERS.filter((letter) => used.has(letter)).map((letter) => {
      const name = marks.find((mark) => mark.type === "PER" && mark.persons.includes(letter));
      return [letter, name ? textOf(name).replace(/\s+/g, " ") : "person"];
    });
  }

  function paint() {
    const [first, last] = head === null ? [-1, -1] : bounds();
    nodes.forEach((node, number) => {
      node.classList.toggle("sel", number >= first && number <= last);
      node.classList.toggle("cur", number === head);
    });
    const mark = current();
    const span = selected();
    const words = span ? characters.slice(span.start, span.end).replace(/\s+/g, " ") : "";
    byId("selection").textContent = !span ? "Nothing selected."
      : mark ? `“${textOf(mark).replace(/\s+/g, " ")}”: ${mark.type}, ${mark.category ?? "category open"}, ${mark.persons.join(" and ")}`
        : `“${words}”: not marked`;
    for (const button of byId("types").children) {
      button.setAttribute("aria-pressed", String(mark?.type === button.dataset.type));
      button.disabled = !span || saving.state.closed;
    }
    byId("persons").replaceChildren(...known().map(([letter, name]) => element("button", {
      type: "button", class: "chip", "aria-pressed": String(persons.includes(letter)),
      onclick: (event) => togglePerson(letter, event.shiftKey),
    }, element("b", {}, letter), ` ${name}`)), element("button", {
      type: "button", class: "chip", "aria-label": "One more person", onclick: addPerson,
    }, "+ person"), element("button", {
      type: "button", class: "chip", "aria-pressed": String(persons.length > 1),
      "aria-label": "Shared with the next person", onclick: share,
    }, "shared"));
    const options = [element("option", { value: "" }, mark ? "choose…" : "first choose a type")];
    for (const name of CATEGORIES[mark?.type] ?? []) options.push(element("option", {}, name));
    category.replaceChildren(...options);
    category.value = mark?.category ?? "";
    category.disabled = !mark || saving.state.closed;
    category.classList.toggle("open", Boolean(mark) && !mark.category);
    byId("remove").disabled = !mark || saving.state.closed;
  }

  function togglePerson(letter, several) {
    if (!several) setPersons([letter]);
    else if (persons.includes(letter)) setPersons(persons.filter((each) => each !== letter));
    else setPersons([...persons, letter]);
  }

  function addPerson() {
    const used = known().map(([letter]) => letter);
    const letter = LETTERS.find((each) => !used.includes(each));
    if (letter) setPersons([letter]);
  }

  function nextPerson() {
    const letters = known().map(([letter]) => letter);
    const place = letters.indexOf(persons[0]);
    if (place + 1 < letters.length) setPersons([letters[place + 1]]);
    else if (marks.some((mark) => mark.persons.includes(persons[0]))) addPerson();
    else setPersons([letters[0]]);
  }

  function share() {
    if (persons.length > 1) {
      setPersons([persons[0]]);
      return;
    }
    const letters = known().map(([letter]) => letter);
    const other = letters.find((letter) => letter > persons[0]) ?? letters.find((letter) => letter !== persons[0])
      ?? LETTERS.find((letter) => letter !== persons[0]);
    setPersons([...persons, other]);
  }

  function list() {
    const groups = new Map();
    for (const mark of marks) {
      const key = [textOf(mark), mark.type, mark.category, mark.persons.join()].join("\u0000");
      groups.set(key, [...(groups.get(key) ?? []), mark]);
    }
    byId("marks").replaceChildren(...[...groups.values()].map((own) => {
      const [mark] = own;
      return element("li", {}, element("button", {
        type: "button", class: "mark-row", onclick: () => selectMark(mark, { focus: true }),
      }, element("span", { class: `tag ${colour(mark.type)}` }, mark.type), ` ${textOf(mark).replace(/\s+/g, " ")} `,
      element("span", { class: mark.category ? "muted" : "open" },
        `${mark.category ?? "category open"} · ${mark.persons.join(" and ")}${own.length > 1 ? ` · ${own.length} places` : ""}${mark.origin === "hand" ? "" : " · suggested"}`)));
    }));
    byId("count").textContent = marks.length ? `(${marks.length})` : "";
    byId("no-marks").hidden = marks.length > 0;
  }

  function suggestions() {
    const box = byId("suggestions");
    const seen = marks.some((mark) => mark.origin !== "hand");
    box.hidden = (!state.suggestion && !seen) || saving.state.closed;
    if (seen) {
      box.replaceChildren(element("button", { type: "button", onclick: () => {
        change(marks.filter((mark) => mark.origin === "hand"));
      } }, "Remove suggestions"));
    } else if (state.suggestion) {
      box.replaceChildren(element("button", { type: "button", onclick: () => {
        const fitting = state.suggestion.filter((s) => !marks.some((m) => s.start < m.end && m.start < s.end));
        const all = [...marks, ...fitting].sort((a, b) => a.start - b.start);
        saving.change({ ...saving.answer, marks: all, suggested: state.system });
      } }, `Insert suggestions of ${state.system}`));
    }
  }

  function draw() {
    nodes = showText(text, characters, tokens, marks.map((mark) => ({
      ...mark,
      kind: `${colour(mark.type)}${mark.category ? "" : " lacks"}${mark.origin === "hand" ? "" : " suggested"}`,
      label: mark.persons.join(""),
      title: `${mark.type}, ${mark.category ?? "category open"}`,
    })));
    if (head !== null && head >= tokens.length) { anchor = null; head = null; }
    paint();
    list();
    suggestions();
  }

  TYPES.forEach((type, number) => {
    byId("types").append(element("button", {
      type: "button", class: `chip ${colour(type)}`, "data-type": type, "aria-pressed": "false",
      "aria-label": `${type} ${TYPE_WORDS[type]}`,
      onclick: () => apply(type),
    }, element("kbd", { "aria-hidden": "true" }, String(number + 1)), ` ${type} `,
    element("span", { class: "small" }, TYPE_WORDS[type])));
  });
  category.addEventListener("change", () => {
    const mark = current();
    if (mark && category.value) replace(alike(mark), () => ({ category: category.value }));
  });
  category.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") {
      event.preventDefault();
      text.focus({ preventScroll: true });
    }
  });
  byId("remove").addEventListener("click", remove);

  // Mouse and touch: press, drag, release; a tap selects a token, or extends the selection to it.
  const tokenAt = (event) => {
    const node = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-token]");
    return node && text.contains(node) ? Number(node.dataset.token) : null;
  };
  let dragging = false;
  text.addEventListener("pointerdown", (event) => {
    const token = tokenAt(event);
    if (token === null || event.button !== 0) return;
    const extend = byId("extend").getAttribute("aria-pressed") === "true";
    if ((event.shiftKey || extend) && anchor !== null) {
      byId("extend").setAttribute("aria-pressed", "false");
      select(anchor, token);
      return;
    }
    dragging = event.pointerType === "mouse";
    const mark = marks.find((each) => each.start <= tokens[token][0] && tokens[token][1] <= each.end);
    if (mark && !dragging) selectMark(mark);
    else select(token, token);
  });
  text.addEventListener("pointermove", (event) => {
    const token = dragging ? tokenAt(event) : null;
    if (token !== null && token !== head) select(anchor, token);
  });
  addEventListener("pointerup", () => {
    // A click on a mark selects the whole mark.
    if (dragging && anchor === head && current()) selectMark(current());
    dragging = false;
  });
  byId("extend").addEventListener("click", () => {
    const now = byId("extend").getAttribute("aria-pressed") === "true";
    byId("extend").setAttribute("aria-pressed", String(!now));
  });

  /** The nearest token in the line above or below on the screen. */
  function line(direction) {
    const from = nodes[head].getBoundingClientRect();
    let best = null;
    let distance = Infinity;
    nodes.forEach((node, number) => {
      const box = node.getBoundingClientRect();
      const rows = direction * (box.top - from.top);
      if (rows < from.height / 2) return;
      const away = rows * 50 + Math.abs(box.left - from.left);
      if (away < distance) { best = number; distance = away; }
    });
    return best ?? head;
  }

  function move(event, token) {
    event.preventDefault();
    const target = Math.max(0, Math.min(tokens.length - 1, token));
    select(event.shiftKey ? anchor : target, target);
  }

  text.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !tokens.length) return;
    if (head === null) { anchor = 0; head = 0; if (event.key.startsWith("Arrow")) { event.preventDefault(); paint(); return; } }
    const [first, last] = bounds();
    if (event.key === "ArrowRight") move(event, (event.shiftKey ? head : last) + 1);
    else if (event.key === "ArrowLeft") move(event, (event.shiftKey ? head : first) - 1);
    else if (event.key === "ArrowDown") move(event, line(1));
    else if (event.key === "ArrowUp") move(event, line(-1));
    else if (event.key === "Home") move(event, 0);
    else if (event.key === "End") move(event, tokens.length - 1);
  });
  addEventListener("keydown", (event) => {
    if (isTyping(event)) return;
    const number = Number(event.key);
    if (number >= 1 && number <= TYPES.length) { event.preventDefault(); apply(TYPES[number - 1]); }
    else if (event.key === "n") step(1);
    else if (event.key === "b") step(-1);
    else if (event.key === "p") nextPerson();
    else if (event.key === "s") share();
    else if (event.key === "o") byId("all").click();
    else if (event.key === "c" && !category.disabled) { event.preventDefault(); category.focus(); }
    else if (event.key === "Delete" || event.key === "Backspace") { event.preventDefault(); remove(); }
  });

  if (state.versions.length) showVersions();
  function showVersions() {
    const key = (mark) => `${mark.start} ${mark.end} ${mark.type}`;
    const counts = new Map();
    for (const version of state.versions) {
      for (const mark of version.answer.marks) counts.set(key(mark), (counts.get(key(mark)) ?? 0) + 1);
    }
    byId("versions").replaceChildren(...state.versions.map((version) => {
      const place = element("div", { class: "text still" });
      showText(place, characters, null, version.answer.marks.map((mark) => ({
        ...mark,
        kind: `${colour(mark.type)}${counts.get(key(mark)) < state.versions.length ? " differs" : ""}`,
        label: mark.persons.join(""),
        title: `${mark.type}, ${mark.category ?? "category open"}`,
      })));
      const remark = version.answer.remark ? [element("p", { class: "plain muted" }, version.answer.remark)] : [];
      const take = element("button", { type: "button", onclick: () => {
        change(version.answer.marks);
        text.focus();
      } }, `Take ${version.label}`);
      return element("section", {}, element("h3", {}, version.label), place, ...remark, take);
    }));
  }

  return { show(answer) { marks = answer.marks; draw(); } };
});
