// Sending to the server. Pages import it: import { send } from "/static/request.js".

/** The headers of a request that sends JSON. */
export function headers() {
  const token = document.querySelector('meta[name="csrf-token"]')?.content ?? "";
  return { "X-CSRF-Token": token, Accept: "application/json", "Content-Type": "application/json" };
}

/**
 * Send JSON and return the answer's JSON.
 * Throws an Error with the server's words where it refuses, and with `status` 0 where it is away.
 */
export async function send(url, body, method = "POST") {
  let answer;
  try {
    answer = await fetch(url, { method, headers: headers(), body: JSON.stringify(body) });
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
