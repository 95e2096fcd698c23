// One sample: what is asked, what is right, and what one or two runs said.

const STATUSES = data.statuses;
const CLASSES = data.classes;
const REWRITE = 3;
const ANSWERED = new Set(["ok", "repaired"]);
const FIGURES = [
  "F1", "P", "R", "RougeL", "Ent-F1", "H", "Protection", "Retention", "Collateral",
];
const MEANING = {
  "missed": "not detected",
  "wrong-span": "a longer, shorter or shifted piece of the text in its place",
  "wrong-type": "detected with a wrong type",
  "not-chosen": "detected, but not taken as needed",
  "not-relevant": "taken as needed, though it is not",
  "wrong-person": "the right attribute of the wrong person",
  "hallucinated": "does not stand in the description",
  "failed": "the system gave no answer",
};

function showSample(set, sample, runs, step) {
  const box = byId("sample");
  if (!sample) {
    box.replaceChildren(el("p", { class: "quiet" }, "No sample is left by these filters."));
    return;
  }
  const parts = [
    el("div", { class: "title" },
      el("h3", {}, sample.id),
      el("span", { class: "steps" },
        el("button", { type: "button", id: "sample-back", disabled: !step.back }, "← previous"),
        el("button", { type: "button", id: "sample-on", disabled: !step.on }, "next →"))),
  ];
  if (set.texts) parts.push(...question(sample), legend());
  else parts.push(el("p", { class: "quiet" }, "The texts of this dataset are left out."));
  const [a, b] = runs.map((run) => run.answers[step.place]);
  parts.push(el("div", { class: runs.length > 1 ? "sides two" : "sides" },
    side(set, sample, runs[0], "A", a, runs[1] && (b ?? {})),
    runs[1] ? side(set, sample, runs[1], "B", b, a ?? {}) : []));
  box.replaceChildren(...parts);
}

function question(sample) {
  const needed = sample.g.filter((gold) => gold[4]);
  return [
    el("h4", {}, "Query"),
    sample.q === null
      ? el("p", { class: "quiet" }, "This dataset has none.")
      : el("p", { class: "text query", dir: "auto" }, sample.q),
    el("h4", {}, "Needed (gold)"),
    el("ul", { class: "chips" }, needed.length
      ? needed.map((gold) => chip(textOf(sample, gold[0]), "", [
        gold[2] < 0 ? TYPES[gold[1]] : data.categories[gold[2]], `of ${sample.s[gold[3]]}`,
      ].join(" ")))
      : el("li", { class: "quiet" }, "nothing")),
  ];
}

const chip = (text, kind, note) =>
  el("li", { class: kind }, el("bdi", {}, text), note ? el("small", {}, note) : []);

function legend() {
  const example = (text, classes, values) => {
    const node = el("span", { class: `mark first last ${classes}` }, text);
    Object.assign(node.dataset, values);
    return el("li", {}, node);
  };
  return el("details", { class: "legend" },
    el("summary", {}, "What the marks say"),
    el("ul", {},
      TYPES.slice(0, OURS).map((type) =>
        example(type, "gold pred", { gold: type, pred: type })),
      example("found", "gold pred", { gold: "LOC", pred: "LOC", label: "LOC" }),
      example("missed", "gold", { gold: "LOC", label: "−LOC" }),
      example("too much", "pred", { pred: "LOC", label: "+LOC" }),
      example("wrong type", "gold pred", { gold: "LOC", pred: "ORG", label: "LOC→ORG" }),
      example("needed", "gold needed", { gold: "LOC" }),
      example("chosen", "pred chosen", { pred: "LOC" }),
      example("A and B differ", "differs", {})),
    el("p", {}, "Line: gold. Fill: detected. Bold with a rhombus: needed. Frame: chosen as ",
      "needed. Of what is predicted only the text is known: it is marked in every place."));
}

function side(set, sample, run, letter, answer, other) {
  const parts = [el("h4", { class: "who" }, el("b", {}, letter), ` ${run.name} `,
    run.oracle ? el("span", { class: "badge oracle" }, "oracle") : [],
    el("small", {}, `unmasked text goes to: ${run.recipients}`))];
  if (!answer) {
    return el("section", { class: "side" }, parts, el("p", { class: "quiet" }, "Never asked."));
  }
  parts.push(scores(answer, other));
  // A rewriting has no classes of error.
  if (answer.s.some((status, task) => status !== null && task !== REWRITE)) parts.push(errorsOf(answer));
  if (set.texts) parts.push(...said(sample, answer, other), ...[calls(sample, run, answer)].flat());
  return el("section", { class: "side" }, parts);
}

// What a chat model was told and what it said, as it came.
function calls(sample, run, answer) {
  const parts = (answer.x ?? []).flatMap((call, task) => {
    if (!call) return [];
    const [text, into, out, seconds, usd] = call;
    const facts = [
      into !== null && `${into.toLocaleString("en")} tokens in, ${out.toLocaleString("en")} out`,
      seconds !== null && `${seconds} s`,
      usd !== null && `$${usd}`,
    ].filter(Boolean).join(", ");
    const prompt = run.prompts[task];
    return el("details", { class: "all call" },
      el("summary", {}, `${data.tasks[task]}: prompt and raw answer `, el("small", {}, facts)),
      el("h5", {}, "Prompt"),
      prompt ? el("pre", { dir: "auto" }, filled(prompt, sample))
        : el("p", { class: "quiet" }, "The prompt has changed since, or depends on examples."),
      el("h5", {}, "Raw answer"), el("pre", { dir: "auto" }, text || "(empty)"));
  });
  return parts.length ? parts : el("p", { class: "quiet" }, "No chat model was asked.");
}

// A prompt has code points for private use where a sample's description, query and choices go.
function filled(prompt, sample) {
  const choices = sample.g.map(([text, , , , , places]) => [places[0] ?? -1, textOf(sample, text)])
    .sort(([one], [other]) => one - other).map(([, text]) => text);
  const parts = {
    "\ue000": sample.d, "\ue001": sample.q ?? "", "\ue002": [...new Set(choices)].join("\n- "),
  };
  return prompt.replace(/[\ue000-\ue002]/g, (place) => parts[place]);
}

function said(sample, answer, other) {
  const texts = [el("div", {}, el("h5", {}, "Description"), markedText(sample, answer, other))];
  if (answer.m) {
    texts.push(el("div", {}, el("h5", {}, "Masked"), maskedText(sample, answer, other),
      maskedLegend()));
  }
  if (answer.w) {
    texts.push(el("div", {}, el("h5", {}, "Rewritten"), rewrittenText(sample, answer),
      rewrittenLegend()));
  }
  return [
    el("div", { class: "texts" }, texts),
    answer.w ? [el("h5", {}, "What the new text tells"), toldList(sample, answer)] : [],
    answer.r ? [el("h5", {}, "Chosen as needed"), chosenList(sample, answer, other)] : [],
    entities(sample, answer),
  ].flat();
}

const rewrittenLegend = () => el("p", { class: "key" },
  el("span", { class: "leak" }, "leaks as written"),
  el("span", { class: "leak restated" }, "in another form"),
  el("span", { class: "leak part" }, "in part"), el("span", { class: "kept" }, "kept for the query"));

const TOLD = {
  "readable": "as written", "restated": "in another form", "part": "in part", "gone": "gone",
};

// Leaks first, then what is needed, then what is gone.
function toldList(sample, answer) {
  const needed = neededTexts(sample);
  const order = (text, trace) => {
    if (needed.has(text)) return 1;
    return trace === "gone" ? 2 : 0;
  };
  const told = answer.w[1].map(([text, trace]) => [text, data.traces[trace]]);
  told.sort((one, next) => order(...one) - order(...next));
  const items = told.map(([text, trace]) => {
    const whole = trace === "readable" || trace === "restated";
    const right = needed.has(text) ? whole : trace === "gone";
    const note = needed.has(text) ? `needed: ${TOLD[trace]}` : TOLD[trace];
    return chip(textOf(sample, text), right ? "right" : "wrong", note);
  });
  return el("ul", { class: "chips" }, items.length ? items : el("li", { class: "quiet" }, "nothing"));
}

const maskedLegend = () => el("p", { class: "key" },
  el("span", { class: "leak" }, "can be read, not needed"),
  el("span", { class: "tag over" }, "hidden, needed"), el("span", { class: "tag stray" }, "no PII"),
  el("span", { class: "kept" }, "kept for the query"));

function scores(answer, other) {
  // No column without a figure of this sample.
  const figures = [...(answer.f ?? []), ...(other?.f ?? [])];
  const shown = FIGURES.map((_, number) => number)
    .filter((number) => number < 4 || figures.some((each) => each?.[number] != null));
  const rows = data.tasks.flatMap((task, place) => {
    const status = answer.s[place];
    if (status === null) return [];
    const theirs = other?.f?.[place];
    return el("tr", {},
      el("th", { scope: "row" }, task),
      el("td", { class: changed(other, status, other?.s?.[place]) }, statusMark(status)),
      shown.map((number) => {
        const value = answer.f[place]?.[number];
        return el("td", { class: `num ${changed(other, value, theirs?.[number])}` }, figureText(value));
      }));
  });
  return el("div", { class: "scroll" }, el("table", { class: "scores" },
    el("thead", {}, el("tr", {}, ["", "Status", ...shown.map((number) => FIGURES[number])].map((name, place) => el("th", {
      scope: "col", class: place > 1 ? "num" : "",
      title: name === "F1" ? "of detection: Strict-F1; of masking and rewriting: of the sets" : "",
    }, name)))),
    el("tbody", {}, rows)));
}

const changed = (other, mine, theirs) => (other && (mine ?? null) !== (theirs ?? null) ? "differs" : "");

const figureText = (value) => (value == null ? "" : value.toFixed(3));

function statusMark(status) {
  const name = STATUSES[status];
  return el("span", { class: ANSWERED.has(name) ? "status" : "status bad" }, name);
}

function errorsOf(answer) {
  const lines = [1, 2].flatMap((task) => {
    const found = errorCounts(answer, task);
    if (!found.size) return [];
    return el("li", {}, el("b", {}, `${data.tasks[task]}: `),
      [...found].map(([kind, [many, few]]) => el("span", { class: "error", title: MEANING[kind] },
        kind, el("small", {}, [many && `${many} too many`, few && `${few} lacking`]
          .filter(Boolean).join(", ")))));
  });
  return el("ul", { class: "faults" }, lines.length ? lines : el("li", { class: "quiet" }, "No errors"));
}

// Class to [too much, lacking].
function errorCounts(answer, task) {
  const found = new Map();
  const flat = (task > 0 && answer?.e[task - 1]) || [];
  for (let place = 0; place < flat.length; place += 3) {
    const kind = CLASSES[flat[place]];
    const counts = found.get(kind) ?? [0, 0];
    counts[flat[place + 1]] += flat[place + 2];
    found.set(kind, counts);
  }
  return found;
}

function chosenList(sample, answer, other) {
  const needed = neededTexts(sample);
  const items = answer.r.map((text) => {
    const kinds = [needed.has(text) ? "right" : "wrong"];
    if (other?.r && !other.r.includes(text)) kinds.push("differs");
    const absent = typeof sample.t[text] === "string" ? "not in the text" : "not needed";
    return chip(textOf(sample, text), kinds.join(" "), needed.has(text) ? "" : absent);
  });
  for (const text of needed) {
    if (answer.r.includes(text)) continue;
    const kind = other?.r?.includes(text) ? "lacking differs" : "lacking";
    items.push(chip(textOf(sample, text), kind, "not chosen"));
  }
  return el("ul", { class: "chips" }, items.length ? items : el("li", { class: "quiet" }, "nothing"));
}

function entities(sample, answer) {
  const detected = new Map();
  (answer.d ?? []).forEach((subject, person) => {
    for (const [text, type] of pairs(subject)) {
      const given = `${TYPES[type]}, person ${person + 1}`;
      detected.set(text, [...(detected.get(text) ?? []), given]);
    }
  });
  const chosen = new Set(answer.r);
  const line = (text, gold, needed) => el("tr", {},
    el("td", {}, el("bdi", {}, textOf(sample, text))), el("td", {}, gold),
    el("td", {}, (detected.get(text) ?? []).join("; ")),
    el("td", {}, needed ? "yes" : ""), el("td", {}, chosen.has(text) ? "yes" : ""));
  const annotated = new Set(sample.g.map((gold) => gold[0]));
  const strays = new Set([...detected.keys(), ...chosen].filter((text) => !annotated.has(text)));
  return el("details", { class: "all" },
    el("summary", {}, "All entities"),
    el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Text", "Gold", "Detected", "Needed", "Chosen"].map((name) =>
        el("th", { scope: "col" }, name)))),
      el("tbody", {},
        sample.g.map(([text, type, category, subject, needed]) => line(text, [
          TYPES[type], ...(category < 0 ? [] : [data.categories[category]]),
          `of ${sample.s[subject]}`,
        ].join(", "), needed)),
        [...strays].map((text) => line(text, "", 0))))));
}
