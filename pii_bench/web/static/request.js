// Sending to the server. Pages import it: import { send } from "/static/request.js".

/** The CSRF token of this page. */
export function csrfToken() {
  return document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}

/**
 * Send JSON (or a FormData) and return the answer's JSON.
 * Throws an Error with the server's words where it refuses, and with `status` 0 where it is away.
 */
export async function send(url, body, method = "POST") {
  const headers = { "X-CSRF-Token": csrfToken(), Accept: "application/json" };
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(url, { method, headers, body: isForm ? body : JSON.stringify(body) });
  } catch {
    throw Object.assign(new Error("The server cannot be reached."), { status: 0 });
  }
  const value = await answer.json().catch(() => ({}));
  if (answer.ok) return value;
  const message = value.error?.message ?? `The server answered ${answer.status}.`;
  throw Object.assign(new Error(message), { status: answer.status });
}

/** An element with attributes and children; texts become text nodes, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
