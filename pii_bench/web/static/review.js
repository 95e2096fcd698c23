// Saves a judgement with each change; "Done, next" finishes it.

import { send } from "/static/request.js";

const form = document.getElementById("judgement");
const place = document.getElementById("status");
let seconds = Number(form.dataset.seconds);
let waiting = Promise.resolve();
let timer;

setInterval(() => { if (document.visibilityState === "visible") seconds += 1; }, 1000);

function judgement(done) {
  const values = new FormData(form);
  const figure = (name) => (values.get(name) === null ? null : Number(values.get(name)));
  return {
    verdict: values.get("verdict") ?? "", privacy: figure("privacy"), meaning: figure("meaning"),
    comment: values.get("comment"), done, seconds,
  };
}

function save(done = false) {
  clearTimeout(timer);
  waiting = waiting.then(async () => {
    place.textContent = "Saving…";
    try {
      const answer = await send(`/reviews/items/${form.dataset.item}`, judgement(done));
      place.textContent = "All saved";
      place.classList.remove("bad");
      return answer;
    } catch (error) {
      place.textContent = `Not saved. ${error.message}`;
      place.classList.add("bad");
      if (error.status === 0) timer = setTimeout(() => save(done), 2000);
    }
  });
  return waiting;
}

form.addEventListener("change", () => save());
form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(save, 600); });
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await save(true);
  if (answer) location.assign(answer.next);
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.key === "Enter" && !event.repeat) form.requestSubmit();
});
