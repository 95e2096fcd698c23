// Requests to the server, and a helper to create elements.

/** The headers of a request that sends JSON. */
export function headers() {
  const token = document.querySelector('meta[name="csrf-token"]')?.content ?? "";
  return { "X-CSRF-Token": token, Accept: "application/json", "Content-Type": "application/json" };
}

/**
 * Send JSON and return the JSON of the response.
 * Throws an Error with the server's message, or with `status` 0 if the server cannot be reached.
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

/** Create an element with attributes and children; strings become text nodes, never HTML. */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") node.toggleAttribute(key, value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}
