// Texts with what lies over them. Offsets are UTF-16 code units, as strings count here.

const data = JSON.parse(byId("data").textContent);
const TYPES = data.types;
const OURS = 7;

// [[start, end], ...] of a flat list.
function pairs(flat) {
  const found = [];
  for (let place = 0; place < flat.length; place += 2) found.push([flat[place], flat[place + 1]]);
  return found;
}

function textOf(sample, number) {
  const places = sample.t[number];
  return typeof places === "string" ? places : sample.d.slice(places[0], places[1]);
}

const placesOf = (sample, number) =>
  typeof sample.t[number] === "string" ? [] : pairs(sample.t[number]);

const neededTexts = (sample) => new Set(sample.g.filter((gold) => gold[4]).map((gold) => gold[0]));

// Cuts a text wherever a span begins or ends: [{start, end, over}], `over` the spans there.
function cut(length, spans) {
  const edges = new Set([0, length]);
  for (const { start, end } of spans) edges.add(start).add(end);
  const ordered = [...edges].sort((a, b) => a - b);
  const sorted = [...spans].sort((a, b) => a.start - b.start);
  const found = [];
  let open = [];
  let next = 0;
  for (let place = 0; place + 1 < ordered.length; place += 1) {
    const [start, end] = [ordered[place], ordered[place + 1]];
    open = open.filter((span) => span.end > start);
    for (; next < sorted.length && sorted[next].start <= start; next += 1) open.push(sorted[next]);
    found.push({ start, end, over: [...open] });
  }
  return found;
}

function goldSpans(sample) {
  return sample.g.flatMap(([, type, category, subject, needed, places]) =>
    pairs(places).map(([start, end]) =>
      ({ kind: "gold", start, end, type, category, subject, needed })));
}

function answerSpans(sample, answer, side) {
  const spans = [];
  (answer?.d ?? []).forEach((subject, person) => {
    for (const [text, type] of pairs(subject)) {
      for (const [start, end] of placesOf(sample, text)) {
        spans.push({ kind: "pred", side, start, end, type, person });
      }
    }
  });
  for (const text of answer?.r ?? []) {
    for (const [start, end] of placesOf(sample, text)) {
      spans.push({ kind: "chosen", side, start, end });
    }
  }
  return spans;
}

// A description with gold and one answer marked; where another answer differs, that too.
function markedText(sample, answer, other) {
  const spans = [...goldSpans(sample), ...answerSpans(sample, answer, 0)];
  if (other) spans.push(...answerSpans(sample, other, 1));
  const box = el("p", { class: "text", dir: "auto" });
  for (const piece of cut(sample.d.length, spans)) {
    const text = sample.d.slice(piece.start, piece.end);
    box.append(piece.over.length ? mark(sample, piece, text, answer, other) : text);
  }
  return box;
}

function mark(sample, { start, end, over }, text, answer, other) {
  const gold = over.filter((span) => span.kind === "gold");
  const pred = over.filter((span) => span.kind === "pred" && span.side === 0);
  const chosen = over.some((span) => span.kind === "chosen" && span.side === 0);
  const differs = other && saying(over, 0) !== saying(over, 1);
  const own = over.filter((span) => span.side !== 1);
  if (!own.length && !differs) return text;
  const node = el("span", { title: describe(sample, gold, pred, chosen, answer) }, text);
  node.classList.add("mark");
  node.classList.toggle("gold", gold.length > 0);
  node.classList.toggle("pred", pred.length > 0);
  node.classList.toggle("needed", gold.some((span) => span.needed));
  node.classList.toggle("chosen", chosen);
  node.classList.toggle("differs", Boolean(differs));
  node.classList.toggle("first", own.some((span) => span.start === start));
  node.classList.toggle("last", own.some((span) => span.end === end));
  if (gold.length) node.dataset.gold = typeName(gold[0].type);
  if (pred.length) node.dataset.pred = typeName(pred[0].type);
  const ends = (span) => span.end === end && span.kind !== "chosen";
  if ([...gold, ...pred].some(ends)) node.dataset.label = label(gold, pred, answer);
  return node;
}

const saying = (over, side) => over
  .filter((span) => span.side === side)
  .map((span) => (span.kind === "pred" ? `type ${span.type}` : span.kind))
  .sort().join();

const typeName = (type) => (type < OURS ? TYPES[type] : "other");

function label(gold, pred, answer) {
  const named = (spans) => [...new Set(spans.map((span) => TYPES[span.type]))].join("/");
  const [right, said] = [named(gold), named(pred)];
  if (!answer?.d || right === said) return right;
  if (!said) return `−${right}`;
  return right ? `${right}→${said}` : `+${said}`;
}

function describe(sample, gold, pred, chosen, answer) {
  const lines = gold.map((span) => {
    const category = span.category < 0 ? "" : `, ${data.categories[span.category]}`;
    const need = span.needed ? ", needed" : "";
    return `gold: ${TYPES[span.type]}${category}, of ${sample.s[span.subject]}${need}`;
  });
  if (answer?.d) {
    lines.push(...pred.map((span) => `detected: ${TYPES[span.type]}, person ${span.person + 1}`));
    if (!pred.length) lines.push("not detected");
  }
  if (answer?.r) lines.push(chosen ? "chosen as needed" : "not chosen");
  return [...new Set(lines)].join("\n");
}

// The masked text. What can be read though it should not, and what is hidden though it is
// needed, is marked.
function maskedText(sample, answer, other) {
  const needed = neededTexts(sample);
  const gold = sample.g.flatMap(([text, , , , , places]) =>
    pairs(places).map(([start, end]) => ({ start, end, needed: needed.has(text) })));
  const hidden = tagSpans(answer);
  const others = other?.m && tagSpans(other);
  const box = el("p", { class: "text masked", dir: "auto" });
  for (const { start, end, over } of cut(sample.d.length, [...gold, ...hidden])) {
    const tag = over.find((span) => "tag" in span);
    const text = sample.d.slice(start, end);
    if (!over.length) box.append(text);
    // A tag stands once for all pieces of what it hides.
    if (!over.length || (tag && tag.start !== start)) continue;
    const span = tag ?? { start, end };
    const covered = gold.filter((each) => each.start < span.end && span.start < each.end);
    const isNeeded = covered.some((each) => each.needed);
    const node = tag
      ? el("span", { title: sample.d.slice(tag.start, tag.end) }, data.tags[tag.tag])
      : el("span", {}, text);
    if (tag) node.classList.add("tag", ...(isNeeded ? ["over"] : covered.length ? [] : ["stray"]));
    else node.classList.add(isNeeded ? "kept" : "leak");
    if (others && isHidden(others, span) !== Boolean(tag)) node.classList.add("differs");
    box.append(node);
  }
  return box;
}

function tagSpans({ m }) {
  const found = [];
  for (let place = 0; place < m.length; place += 3) {
    found.push({ start: m[place], end: m[place + 1], tag: m[place + 2] });
  }
  return found;
}

const isHidden = (hidden, { start, end }) =>
  hidden.some((span) => span.start <= start && end <= span.end);

// A text that was written anew, with what it tells of the values of the original.
function rewrittenText(sample, answer) {
  const [text, told] = answer.w;
  const needed = neededTexts(sample);
  const spans = told.flatMap(([number, trace, places]) => pairs(places).map(([start, end]) =>
    ({ start, end, number, trace: data.traces[trace], needed: needed.has(number) })));
  const box = el("p", { class: "text rewritten", dir: "auto" });
  for (const { start, end, over } of cut(text.length, spans)) {
    const piece = text.slice(start, end);
    const shown = over.find((span) => !span.needed) ?? over[0];
    if (!shown) {
      box.append(piece);
      continue;
    }
    const title = over.map((span) =>
      `${textOf(sample, span.number)}: ${span.needed ? "needed, " : ""}${TOLD[span.trace]}`);
    const node = el("span", { title: [...new Set(title)].join("\n") }, piece);
    if (shown.needed) node.classList.add("kept");
    else node.classList.add("leak", shown.trace);
    box.append(node);
  }
  return box;
}
