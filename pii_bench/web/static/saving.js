// A task in the browser: saves each change in order, keeps it until it is stored, counts the time.

import { element, headers, send } from "/static/request.js";

const IDLE_AFTER = 60_000;
const LONGEST_WAIT = 15_000;

/** Saves the answers of a task one by one; calls `show` when the displayed answer must change. */
export class Saving {
  constructor(id, state, show) {
    this.url = `/tasks/${id}`;
    this.key = `pii-bench-task-${id}`;
    this.show = show;
    this.queue = [];
    this.undoing = Promise.resolve();
    // Marks whose other places are being searched; `finish` waits for them.
    this.marking = Promise.resolve();
    this.take(state);
    this.watch();
  }

  take(state) {
    this.state = state;
    this.answer = state.answer;
    this.version = state.version;
    this.canUndo = state.canUndo;
    this.seconds = Math.max(this.seconds ?? 0, state.seconds);
  }

  /** Send changes that were not saved before the page was left, or report a conflict. */
  resume() {
    const kept = JSON.parse(localStorage.getItem(this.key) ?? "null");
    if (!kept || this.state.closed) {
      this.forget();
    } else if (kept.base === this.version) {
      for (const answer of kept.queue) this.change(answer);
    } else {
      this.queue = kept.queue.slice(-1);
      this.answer = this.queue[0];
      this.refuse("This machine has unsaved changes, but the answer was changed elsewhere.");
    }
  }

  /** Queue a changed answer. */
  change(answer) {
    if (this.state.closed) return;
    this.answer = answer;
    this.queue.push(answer);
    this.canUndo = true;
    this.keep();
    this.show(answer);
    this.flush();
  }

  keep() {
    const value = { base: this.version, queue: this.queue };
    if (this.queue.length) localStorage.setItem(this.key, JSON.stringify(value));
    else this.forget();
  }

  forget() {
    localStorage.removeItem(this.key);
  }

  /** Send the queue; resolves to true when all is saved, or to false if the server refused it. */
  flush() {
    this.running ??= this.sendAll().finally(() => { this.running = undefined; });
    return this.running;
  }

  async sendAll() {
    let wait = 500;
    while (this.queue.length) {
      status("Saving…");
      // An undo in progress makes a version too.
      await this.asking?.catch(() => {});
      try {
        const answer = this.queue[0];
        const saved = await send(`${this.url}/save`, {
          base: this.version, answer, seconds: this.seconds, done: false,
        });
        this.version = saved.version;
        this.queue.shift();
        this.keep();
        wait = 500;
      } catch (error) {
        if (error.status === 409) return this.refuse(error.message);
        if (error.status === 400 || error.status === 422) {
          this.queue = [];
          this.forget();
          status(`Not saved: ${error.message}`, true);
          this.reload();
          return false;
        }
        // A new session has another CSRF token, which only a new page gets.
        const why = error.status === 401 || error.status === 403
          ? "Log in again and load this page again: your changes are kept."
          : `${error.message} Trying again…`;
        status(`Not saved yet. ${why}`, true);
        await new Promise((resolve) => { setTimeout(resolve, wait); });
        wait = Math.min(2 * wait, LONGEST_WAIT);
      }
    }
    status("All saved");
    return true;
  }

  /** Finish the task; resolves to true if the server accepted it. */
  async finish() {
    await this.marking;
    if (!(await this.flush())) return false;
    try {
      const saved = await send(`${this.url}/save`, {
        base: this.version, answer: this.answer, seconds: this.seconds, done: true,
      });
      this.version = saved.version;
      this.left = true;
      return true;
    } catch (error) {
      if (error.status === 409) this.refuse(error.message);
      else status(error.message, true);
      return false;
    }
  }

  /** Undo the last change; several undos run one after the other. */
  undo() {
    this.undoing = this.undoing.then(async () => {
      if (!this.canUndo || this.state.closed || !(await this.flush())) return;
      this.asking = send(`${this.url}/undo`, { base: this.version });
      try {
        const state = await this.asking;
        const later = this.queue.length ? this.answer : state.answer;
        this.take(state);
        this.answer = later;
        this.show(later);
        status("Undone");
      } catch (error) {
        if (error.status === 409) this.refuse(error.message);
        else status(error.message, true);
      }
      this.asking = undefined;
    });
    return this.undoing;
  }

  async reload() {
    this.take(await send(`${this.url}/state`, undefined, "GET"));
    this.show(this.answer);
  }

  /** Ask which version to keep after the task was changed elsewhere. */
  refuse(message) {
    const box = document.getElementById("conflict");
    const close = () => { box.hidden = true; };
    const theirs = element("button", { type: "button", onclick: async () => {
      this.queue = [];
      this.forget();
      close();
      await this.reload();
      status("This is the other version");
    } }, "Show the other version");
    const mine = element("button", { type: "button", onclick: async () => {
      const answer = this.answer;
      const now = await send(`${this.url}/state`, undefined, "GET");
      close();
      if (now.closed) { this.queue = []; this.forget(); this.take(now); this.show(this.answer); return; }
      this.version = now.version;
      this.queue = [];
      this.change(answer);
    } }, "Keep mine");
    box.replaceChildren(element("p", {}, message), element("p", { class: "row" }, theirs, mine));
    box.hidden = false;
    status("Not saved", true);
    return false;
  }

  /** Count the seconds of activity, and send them when the page is left. */
  watch() {
    let active = Date.now();
    for (const kind of ["keydown", "pointerdown", "pointermove", "scroll"]) {
      addEventListener(kind, () => { active = Date.now(); }, { passive: true, capture: true });
    }
    setInterval(() => {
      if (document.visibilityState === "visible" && Date.now() - active < IDLE_AFTER) this.seconds += 1;
    }, 1000);
    addEventListener("pagehide", () => {
      if (this.left || this.state.closed) return;
      fetch(`${this.url}/time`, {
        method: "POST", keepalive: true, headers: headers(), body: JSON.stringify({ seconds: this.seconds }),
      }).catch(() => {});
    });
  }
}

/** Show the state of saving. */
export function status(words, bad = false) {
  const place = document.getElementById("status");
  place.textContent = words;
  place.classList.toggle("bad", bad);
}

/** Load a task, set up what both stages share, and call `start` with the `Saving`. */
export async function openTask(start) {
  const place = document.getElementById("task");
  let state;
  try {
    state = await send(`/tasks/${place.dataset.task}/state`, undefined, "GET");
  } catch (error) {
    status(error.message, true);
    return;
  }
  const saving = new Saving(place.dataset.task, state, (answer) => page.show(answer));
  const page = start(saving, state);
  const remark = document.getElementById("remark");
  remark.value = state.answer.remark ?? "";
  remark.addEventListener("change", () => saving.change({ ...saving.answer, remark: remark.value }));
  const undo = document.getElementById("undo");
  undo.addEventListener("click", () => saving.undo());
  const show = page.show;
  page.show = (answer) => {
    undo.disabled = !saving.canUndo || saving.state.closed;
    if (document.activeElement !== remark) remark.value = answer.remark ?? "";
    show(answer);
  };
  const finish = async () => {
    if (remark.value !== (saving.answer.remark ?? "")) {
      saving.change({ ...saving.answer, remark: remark.value });
    }
    if (!(await saving.finish())) return;
    if (place.dataset.next) location.assign(place.dataset.next);
    else document.getElementById("forward").submit();
  };
  document.getElementById("finish").addEventListener("click", finish);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === "Enter") {
      event.preventDefault();
      if (!event.repeat) finish();
    } else if (event.ctrlKey && event.key.toLowerCase() === "z" && event.target !== remark) {
      event.preventDefault();
      saving.undo();
    } else if (!isTyping(event) && (event.key === "?" || event.key === "g")) {
      const box = document.getElementById(event.key === "g" ? "guidelines" : "keys");
      box.open = !box.open;
      if (box.open) box.scrollIntoView({ block: "nearest" });
    }
  });
  page.show(state.answer);
  if (state.closed) {
    status("Closed: this answer can no longer be changed");
    document.getElementById("finish").disabled = true;
  } else {
    status(state.done ? "Done; you may still change it" : "All saved");
    saving.resume();
  }
}

/** Return true if a key is typed into a field or is a shortcut. */
export function isTyping(event) {
  const { target } = event;
  return event.ctrlKey || event.metaKey || event.altKey
    || target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select") !== null;
}
