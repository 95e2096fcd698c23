// What is shown is kept in the fragment of the address, so that a link leads back to it.

const DEFAULTS = {
  // The leaderboard.
  dataset: "", task: "", source: "", text: "", sort: "",
  // The samples.
  set: "", a: "", b: "", by: "", status: "", error: "", order: "", find: "", diff: "",
  page: "1", sample: "",
};
const state = { ...DEFAULTS };

function readState() {
  const fragment = location.hash.slice(1);
  // Anything else is the name of a section.
  if (fragment && !fragment.includes("=")) return;
  const given = new URLSearchParams(fragment);
  for (const name of Object.keys(DEFAULTS)) state[name] = given.get(name) ?? DEFAULTS[name];
}

// A step is what the browser's back button undoes.
function change(changes, { step = false } = {}) {
  const next = { ...state, ...changes };
  const given = Object.entries(next).filter(([name, value]) => value !== DEFAULTS[name]);
  const fragment = `#${new URLSearchParams(given)}` + (given.length ? "" : "all=");
  if (step) location.hash = fragment;
  else location.replace(fragment);
}

// Texts become text nodes: nothing in this page makes markup of a text.
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null && value !== "") node.setAttribute(key, value);
  }
  node.append(...children.flat());
  return node;
}

const byId = (id) => document.getElementById(id);

// A value that is no option here, kept from elsewhere or written by hand, becomes one.
function fillSelect(select, given, value) {
  const options = given.some(([key]) => key === value) ? given : [...given, [value, value]];
  select.replaceChildren(...options.map(([key, label]) => new Option(label, key)));
  select.value = value;
  select.disabled = options.length < 2;
}

// A form whose fields are named as the state is. Search fields act while one types; what they
// tell when they are left would take the list away under the pointer.
function bind(form, alsoChange) {
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["input", "change"]) {
    form.addEventListener(kind, ({ target: { name, type, checked, value } }) => {
      if ((type === "search") !== (kind === "input")) return;
      change({ ...alsoChange, [name]: type === "checkbox" ? (checked ? "1" : "") : value });
    });
  }
}
