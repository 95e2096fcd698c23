// Stage 2: choose what the question needs.

import { element } from "/static/request.js";
import { openTask } from "/static/saving.js";
import { Characters, colour, showText } from "/static/marked_text.js";

const LETTERS = Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
const CHECKS = ["necessary", "sufficient", "ambiguous"];

const byId = (id) => document.getElementById(id);

openTask((saving, state) => {
  const characters = new Characters(state.text);
  byId("query").textContent = state.query ?? "";
  byId("no-items").hidden = state.items.length > 0;
  const letters = LETTERS.slice(0, Math.min(26, new Set(state.items.map((item) => item.person)).size + 1));
  const boxes = [];
  const choosers = [];

  // The spans of all items; of items with the same span, the first is shown.
  const places = [];
  const taken = new Set();
  state.items.forEach((item, number) => {
    for (const [start, end] of item.spans) {
      if (![...Array(end - start).keys()].some((n) => taken.has(start + n))) {
        for (let n = start; n < end; n += 1) taken.add(n);
        places.push({ start, end, number });
      }
    }
  });
  places.sort((a, b) => a.start - b.start);
  const sharing = (number) => state.items.flatMap((item, other) => (
    item.text === state.items[number].text ? [other] : []));

  /** Reset the confirmations, because they were given for another choice. */
  const change = (changes) => saving.change({ ...saving.answer, necessary: false, sufficient: false, ...changes });

  function toggle(number) {
    const needed = new Set(saving.answer.needed);
    if (!needed.delete(number)) needed.add(number);
    change({ needed: [...needed].sort((a, b) => a - b) });
  }

  state.items.forEach((item, number) => {
    const box = element("input", { type: "checkbox", id: `item-${number}`, onchange: () => toggle(number) });
    const chooser = element("select", { "aria-label": `Person of ${item.text}`, onchange: () => {
      const persons = { ...saving.answer.persons };
      if (chooser.value === item.person) delete persons[number];
      else persons[number] = chooser.value;
      change({ persons });
    } }, ...letters.map((letter) => element("option", { value: letter }, letter)));
    boxes.push(box);
    choosers.push(chooser);
    byId("items").append(element("li", {}, box,
      element("label", { for: `item-${number}` }, item.text.replace(/\s+/g, " "), " ",
        element("span", { class: `tag ${colour(item.type)}` }, item.type), " ",
        element("span", { class: "muted small" }, item.category ?? "")),
      element("span", { class: "votes small muted", id: `votes-${number}` }), chooser));
  });
  byId("items").addEventListener("keydown", (event) => {
    const place = boxes.indexOf(event.target);
    const next = { ArrowDown: place + 1, ArrowUp: place - 1 }[event.key];
    if (place < 0 || next === undefined) return;
    event.preventDefault();
    boxes[Math.max(0, Math.min(boxes.length - 1, next))].focus();
  });
  for (const name of CHECKS) {
    byId(name).addEventListener("change", () => saving.change({ ...saving.answer, [name]: byId(name).checked }));
  }
  byId("text").addEventListener("click", (event) => {
    const node = event.target.closest("[data-span]");
    if (node && !saving.state.closed) toggle(places[Number(node.dataset.span)].number);
  });

  if (state.versions.length) {
    state.items.forEach((item, number) => {
      const votes = state.versions.filter((version) => version.answer.needed.includes(number)).length;
      byId(`votes-${number}`).textContent = `${votes} of ${state.versions.length}`;
    });
    byId("versions").replaceChildren(...state.versions.map((version) => element("section", {},
      element("h3", {}, version.label),
      element("ul", {}, ...(version.answer.needed.length
        ? version.answer.needed.map((number) => element("li", {
          class: state.versions.every((other) => other.answer.needed.includes(number)) ? "" : "differs",
        }, state.items[number].text))
        : [element("li", { class: "muted" }, "nothing")])),
      ...(version.answer.ambiguous ? [element("p", { class: "muted" }, "finds it ambiguous")] : []),
      ...(version.answer.remark ? [element("p", { class: "plain muted" }, version.answer.remark)] : []),
      element("button", { type: "button", onclick: () => change({
        needed: version.answer.needed, persons: version.answer.persons ?? {},
      }) }, `Take ${version.label}`))));
  }

  // Focus the first item, so that the arrow keys and the space bar work.
  (boxes[0] ?? byId("necessary")).focus({ preventScroll: true });

  return {
    show(answer) {
      const needed = new Set(answer.needed);
      boxes.forEach((box, number) => { box.checked = needed.has(number); box.disabled = saving.state.closed; });
      choosers.forEach((chooser, number) => {
        chooser.value = answer.persons?.[number] ?? state.items[number].person;
        chooser.disabled = saving.state.closed;
      });
      for (const name of CHECKS) {
        byId(name).checked = Boolean(answer[name]);
        byId(name).disabled = saving.state.closed;
      }
      showText(byId("text"), characters, null, places.map(({ start, end, number }) => {
        const chosen = sharing(number).some((each) => needed.has(each));
        return { start, end, kind: `${colour(state.items[number].type)} ${chosen ? "chosen" : "faded"}` };
      }));
    },
  };
});
