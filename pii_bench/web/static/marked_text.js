// A text as tokens and marks. Positions count code points, not UTF-16 units as in JavaScript.

import { element } from "/static/request.js";

export const TYPES = ["PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"];

export const TYPE_WORDS = {
  PER: "name", CODE: "number", LOC: "place", ORG: "organisation", DEM: "detail", DATETIME: "time",
  QUANTITY: "money",
};

/** A text that is sliced by code points. */
export class Characters {
  constructor(text) { this.all = Array.from(text); }

  slice(start, end) { return this.all.slice(start, end).join(""); }
}

/**
 * Show a text in an element.
 * `spans` are {start, end, kind, label, title}, sorted and without overlaps.
 * With `tokens`, each token becomes an element with data-token; else only spans are elements.
 * Returns the elements of the tokens.
 */
export function showText(place, characters, tokens, spans) {
  const nodes = [];
  const tokenNodes = [];
  let at = 0;
  let token = 0;
  const run = (into, end) => {
    while (tokens && token < tokens.length && tokens[token][1] <= end) {
      const [first, last] = tokens[token];
      if (first > at) into.push(characters.slice(at, first));
      const node = element("span", { class: "t", "data-token": token }, characters.slice(first, last));
      tokenNodes.push(node);
      into.push(node);
      at = last;
      token += 1;
    }
    if (at < end) into.push(characters.slice(at, end));
    at = end;
  };
  spans.forEach((span, number) => {
    run(nodes, span.start);
    const inside = [];
    run(inside, span.end);
    const node = element("span", { class: `m ${span.kind}`, "data-span": number }, ...inside);
    if (span.label) node.dataset.label = span.label;
    if (span.title) node.title = span.title;
    nodes.push(node);
  });
  run(nodes, characters.all.length);
  place.replaceChildren(...nodes);
  return tokenNodes;
}

/** The class of a type's colour. */
export function colour(type) { return `t-${type.toLowerCase()}`; }
