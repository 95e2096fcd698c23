// The list of samples: which are shown, in which order, page by page.

const PAGE = 25;
const UNFILTERED = { b: "", status: "", error: "", order: "", find: "", diff: "", page: "1", sample: "" };

const TASKS = data.tasks.map((_, task) => task);
const WITH_ERRORS = new Set([1, 2]);

for (const run of data.runs) {
  run.tasks = TASKS.filter((task) => run.answers.some((each) => each && each.s[task] !== null));
  run.strict = run.answers.some((each) => each?.f[0]?.[0] != null);
}

// The state with names replaced by what they stand for.
function resolve() {
  const set = data.datasets.find((each) => each.name === state.set) ?? data.datasets[0];
  const all = data.runs.filter((run) => data.datasets[run.dataset] === set);
  const a = all.find((run) => run.name === state.a) ?? all[0];
  const b = all.find((run) => run.name === state.b && run !== a);
  const runs = b ? [a, b] : [a];
  const tasks = TASKS.filter((task) => runs.some((run) => run.tasks.includes(task)));
  const named = data.tasks.indexOf(state.by);
  const task = tasks.includes(named) ? named : tasks.at(-1);
  // Ent-F1 where a detection names no subjects: both runs are shown by one figure.
  const headlines = [runs.every((run) => run.strict) ? "F1" : "Ent-F1", "F1", "H", "H"];
  const figure = FIGURES.indexOf(headlines[task]);
  return { set, all, runs, tasks, task, figure };
}

function startSamples() {
  if (!data.runs.length) {
    byId("samples").append(el("p", { class: "quiet" }, "There is no run to look into."));
    return;
  }
  byId("samples-view").hidden = false;
  bind(byId("samples-controls"), { page: "1", sample: "" });
  byId("list").addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-id]");
    if (!button) return;
    change({ sample: button.dataset.id }, { step: true });
    if (byId("sample").offsetTop > byId("list").offsetTop) byId("sample").scrollIntoView();
  });
  byId("errors").addEventListener("click", ({ target }) => {
    const kind = target.closest("button")?.dataset.kind;
    if (kind) change({ error: state.error === kind ? "" : kind, page: "1", sample: "" });
  });
}

function showSamples() {
  if (!data.runs.length) return;
  const now = resolve();
  showControls(now);
  const places = now.set.samples.map((_, place) => place).filter((place) => passes(now, place));
  showErrors(now, places);
  const found = inOrder(now, places.filter((place) => hasError(now, place)));
  const asked = found.findIndex((place) => now.set.samples[place].id === state.sample);
  const last = Math.max(1, Math.ceil(found.length / PAGE));
  const wanted = Math.min(Math.max(1, Math.floor(Number(state.page)) || 1), last);
  const at = asked < 0 ? (wanted - 1) * PAGE : asked;
  const page = asked < 0 ? wanted : Math.floor(asked / PAGE) + 1;
  showList(now, found, page, found[at]);
  const focused = document.activeElement?.id;
  const idAt = (place) => now.set.samples[found[place]]?.id;
  showSample(now.set, now.set.samples[found[at]], now.runs,
    { place: found[at], back: idAt(at - 1), on: idAt(at + 1) });
  onClick("sample-back", () => change({ sample: idAt(at - 1) }, { step: true }));
  onClick("sample-on", () => change({ sample: idAt(at + 1) }, { step: true }));
  // Whoever steps on with the keyboard goes on doing so.
  if (focused) byId(focused)?.focus();
}

function onClick(id, action) {
  const button = byId(id);
  if (button) button.onclick = action;
}

function showControls({ set, all, runs, tasks, task }) {
  const { elements } = byId("samples-controls");
  const [a, b] = runs;
  const each = (names) => names.map((name) => [name, name]);
  fillSelect(elements.set, each(data.datasets.map(({ name }) => name)), set.name);
  fillSelect(elements.a, each(all.map(({ name }) => name)), a.name);
  const others = all.filter((run) => run !== a).map(({ name }) => name);
  fillSelect(elements.b, [["", "none"], ...each(others)], b?.name ?? "");
  fillSelect(elements.by, each(tasks.map((number) => data.tasks[number])), data.tasks[task]);
  fillSelect(elements.status, [["", "all"], ...each(statuses(runs, task))], state.status);
  fillSelect(elements.error, [["", "all"], ...each(WITH_ERRORS.has(task) ? CLASSES : [])], state.error);
  const orders = [["", "as in the file"], ["worst", "lowest score of A first"]];
  if (b) orders.push(["gap", "largest difference first"]);
  fillSelect(elements.order, orders, b || state.order !== "gap" ? state.order : "");
  elements.diff.checked = state.diff !== "";
  byId("diff-label").textContent = b ? "only where A and B differ" : "only where A is not right";
  if (elements.find.value !== state.find) elements.find.value = state.find;
}

function statuses(runs, task) {
  const found = new Set(runs.flatMap((run) => run.answers.map((answer) => answer?.s[task] ?? null)));
  return STATUSES.filter((_, number) => found.has(number));
}

function passes({ set, runs, task, figure }, place) {
  const sample = set.samples[place];
  const answers = runs.map((run) => run.answers[place]);
  const texts = [sample.id, sample.d, sample.q].join("\n").toLowerCase();
  if (state.find && !texts.includes(state.find.toLowerCase())) return false;
  const status = STATUSES.indexOf(state.status);
  if (status >= 0 && !answers.some((answer) => answer?.s[task] === status)) return false;
  if (!state.diff) return true;
  if (answers.length < 2) return answers[0]?.f[task]?.[figure] !== 1;
  return essence(answers[0], task, set) !== essence(answers[1], task, set);
}

// What makes an answer to a task another answer.
function essence(answer, task, set) {
  if (!answer) return "";
  const parts = [answer.s[task], answer.f[task]];
  if (set.texts) {
    const detected = (answer.d ?? []).map((subject) => pairs(subject).sort().join(";")).sort();
    parts.push(answer.w?.[0] ?? null);
    parts.push(task === 1 ? null : detected, task === 0 ? null : [...(answer.r ?? [])].sort());
  }
  return JSON.stringify(parts);
}

function hasError({ runs, task }, place) {
  if (!state.error || !WITH_ERRORS.has(task)) return true;
  return runs.some((run) => errorCounts(run.answers[place], task).has(state.error));
}

function inOrder({ runs, task, figure }, places) {
  const scoreOf = (run, place) => run.answers[place]?.f[task]?.[figure] ?? -1;
  if (state.order === "worst") {
    return places.sort((one, other) => scoreOf(runs[0], one) - scoreOf(runs[0], other));
  }
  if (state.order === "gap" && runs[1]) {
    const gap = (place) => Math.abs(scoreOf(runs[0], place) - scoreOf(runs[1], place));
    return places.sort((one, other) => gap(other) - gap(one));
  }
  return places;
}

function showList({ set, runs, task, figure }, found, page, current) {
  const first = (page - 1) * PAGE;
  const count = `${found.length} of ${set.samples.length} samples`;
  byId("samples-count").textContent = count;
  const back = byId("page-back");
  const on = byId("page-on");
  back.disabled = page <= 1;
  on.disabled = first + PAGE >= found.length;
  back.onclick = () => change({ page: String(page - 1), sample: "" });
  on.onclick = () => change({ page: String(page + 1), sample: "" });
  const letters = runs.length > 1 ? ["A", "B"] : ["A"];
  const focused = document.activeElement?.dataset.id;
  byId("list").replaceChildren(el("table", { class: "list" },
    el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, "Sample"),
      letters.flatMap((letter) => [
        el("th", { scope: "col", class: "num" }, `${letter} ${FIGURES[figure]}`),
        task ? el("th", { scope: "col", class: "num" }, task === REWRITE ? "leaks" : "errors") : [],
      ]))),
    el("tbody", {}, found.slice(first, first + PAGE).map((place) => {
      const { id } = set.samples[place];
      const button = el("button", { type: "button", "data-id": id }, id);
      if (place === current) button.setAttribute("aria-current", "true");
      return el("tr", { class: place === current ? "current" : "" },
        el("td", {}, button),
        runs.flatMap((run) => listCells(run.answers[place], task, figure)));
    }))));
  if (focused) {
    [...byId("list").querySelectorAll("button")].find(({ dataset }) => dataset.id === focused)?.focus();
  }
}

function listCells(answer, task, figure) {
  const status = answer?.s[task] ?? null;
  const value = answer?.f[task]?.[figure];
  const good = status !== null && ANSWERED.has(STATUSES[status]);
  const counts = task === REWRITE ? answer?.l ?? [] : [...errorCounts(answer, task).values()].flat();
  const errors = counts.reduce((sum, n) => sum + n, 0);
  return [
    el("td", { class: "num" },
      good ? figureText(value) : el("span", { class: "status bad" }, STATUSES[status] ?? "-")),
    task ? el("td", { class: "num quiet" }, answer && (good || task !== REWRITE) ? String(errors) : "") : [],
  ];
}

// Errors of the samples found, class by class.
function showErrors({ runs, task }, places) {
  const box = byId("errors");
  if (!WITH_ERRORS.has(task)) {
    box.replaceChildren();
    return;
  }
  const totals = runs.map((run) => {
    const sums = Object.fromEntries(CLASSES.map((kind) => [kind, 0]));
    for (const place of places) {
      for (const [kind, counts] of errorCounts(run.answers[place], task)) {
        sums[kind] += counts[0] + counts[1];
      }
    }
    return sums;
  });
  const most = Math.max(1, ...totals.flatMap((sums) => Object.values(sums)));
  box.replaceChildren(el("h4", {}, `Errors by class: ${data.tasks[task]}`), el("ul", { class: "classes" },
    CLASSES.map((kind) => {
      const bars = totals.map((sums, number) => {
        const bar = el("i", { class: number ? "bar b" : "bar", hidden: !sums[kind] });
        bar.style.width = `${(100 * sums[kind]) / most}%`;
        const letter = runs.length > 1 ? `${"AB"[number]} ` : "";
        return el("span", { class: "line" }, el("span", { class: "track" }, bar), el("small", {}, `${letter}${sums[kind]}`));
      });
      return el("li", {}, el("button", {
        type: "button", "data-kind": kind, "aria-pressed": String(state.error === kind),
        title: MEANING[kind],
      }, el("b", {}, kind), bars));
    })));
}

function show() {
  readState();
  showTables();
  showSamples();
}

// Three samples of the best system, under the summary.
function showExamples() {
  const cards = data.examples.map(({ set, run, sample, title }) => {
    const dataset = data.datasets.find(({ name }) => name === set);
    const place = dataset.samples.findIndex(({ id }) => id === sample);
    const answers = data.runs.find((each) =>
      data.datasets[each.dataset] === dataset && each.name === run).answers;
    const link = `#${new URLSearchParams({ set, by: "masking", a: run, sample })}`;
    return el("article", {},
      el("h4", {}, title),
      el("p", { class: "text query", dir: "auto" }, dataset.samples[place].q),
      maskedText(dataset.samples[place], answers[place], undefined),
      el("p", {}, el("a", { class: "to-sample", href: link }, sample)));
  });
  if (cards.length) {
    byId("examples").append(el("h3", {}, "Three examples"), maskedLegend(),
      el("div", { class: "examples" }, cards));
  }
}

startTables();
startSamples();
showExamples();
window.addEventListener("hashchange", show);
for (const link of document.querySelectorAll(".board td.model a, a.to-sample")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
    change({ ...UNFILTERED, ...given }, { step: true });
    byId("samples").scrollIntoView();
  });
}
show();
