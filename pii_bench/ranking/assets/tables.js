// The leaderboard: tables that are there already are sorted and filtered.

const sections = [...document.querySelectorAll("section.board")];
const boards = sections.map((section) => {
  const table = section.querySelector("table");
  return { section, table, rows: [...table.tBodies[0].rows] };
});

function startTables() {
  const form = byId("board-controls");
  const options = (values) => [["", "all"], ...[...new Set(values)].map((each) => [each, each])];
  const rows = boards.flatMap((board) => board.rows);
  fillSelect(form.elements.dataset, options(sections.map((each) => each.dataset.dataset)), "");
  fillSelect(form.elements.task, options(sections.map((each) => each.dataset.task)), "");
  fillSelect(form.elements.source, options(rows.map((row) => row.dataset.source)), "");
  form.hidden = false;
  bind(form);
  for (const { table } of boards) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.firstChild.addEventListener("click", () => sortBy(table.id, column, head));
    });
  }
}

// First the direction that brings the best to the top, then the other, then none.
function sortBy(id, column, head) {
  const first = head.firstChild.dataset.first;
  const other = first === "ascending" ? "descending" : "ascending";
  const next = { [first]: other, [other]: null }[head.getAttribute("aria-sort")];
  const others = state.sort.split(",").filter((each) => each && !each.startsWith(`${id}.`));
  const direction = next === undefined ? first : next;
  if (direction) others.push(`${id}.${column}.${direction}`);
  change({ sort: others.join(",") });
}

function showTables() {
  const form = byId("board-controls");
  for (const name of ["dataset", "task", "source", "text"]) {
    if (form.elements[name].value !== state[name]) form.elements[name].value = state[name];
  }
  const narrowed = ["dataset", "task", "source", "text", "sort"].some((name) => state[name]);
  let shown = 0;
  for (const { section, table, rows } of boards) {
    const { dataset, task } = section.dataset;
    const wanted = [state.dataset || dataset, state.task || task];
    const kept = wanted[0] === dataset && wanted[1] === task ? rows.filter(isWanted) : [];
    for (const row of rows) row.hidden = true;
    for (const row of kept) row.hidden = false;
    section.hidden = !kept.length;
    if (narrowed) section.querySelector("details").open = true;
    shown += kept.length;
    showOrder(table, rows);
  }
  const all = boards.reduce((sum, { rows }) => sum + rows.length, 0);
  byId("board-count").textContent = shown === all ? `${all} rows` : `${shown} of ${all} rows`;
}

function isWanted(row) {
  const names = [...row.querySelectorAll(".model, .strategy")]
    .map((cell) => cell.textContent.toLowerCase()).join(" ");
  const words = state.text.toLowerCase().split(/\s+/);
  return (!state.source || row.dataset.source === state.source)
    && words.every((word) => names.includes(word));
}

function showOrder(table, rows) {
  const given = state.sort.split(",").find((each) => each.startsWith(`${table.id}.`));
  const [, column, direction] = given ? given.split(".") : [];
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (given && place === Number(column)) head.setAttribute("aria-sort", direction);
    else head.removeAttribute("aria-sort");
  });
  const ordered = given ? [...rows].sort(byColumn(Number(column), direction)) : rows;
  table.tBodies[0].append(...ordered);
}

// What is unknown comes last in both directions.
function byColumn(column, direction) {
  const sign = direction === "descending" ? -1 : 1;
  const valueOf = (row) => row.cells[column]?.dataset.value;
  return (one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    const numbers = [Number(a), Number(b)];
    if (!numbers.some(Number.isNaN)) return sign * (numbers[0] - numbers[1]);
    return sign * a.localeCompare(b);
  };
}
