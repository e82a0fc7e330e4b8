"use strict";
// Switches branches, searches, folds. The page is whole without it.
(() => {
  const path = document.querySelector(".path");
  const others = document.querySelector(".others");
  const runs = [...document.querySelectorAll(".run")].sort((a, b) => a.dataset.run - b.dataset.run);
  const children = new Map();
  for (const run of runs) {
    if (run.dataset.parent === "") continue;
    const siblings = children.get(run.dataset.parent) || [];
    children.set(run.dataset.parent, siblings.concat(run));
  }

  // The branch through `run`: up to the root, and down along the newest entries.
  function show(run) {
    const branch = new Set();
    for (let up = run; up && !branch.has(up); up = runs[up.dataset.parent]) {
      branch.add(up);
      if (up.dataset.parent === "") break;
    }
    for (let below = children.get(run.dataset.run); below; ) {
      const newest = below[below.length - 1];
      if (branch.has(newest)) break;
      branch.add(newest);
      below = children.get(newest.dataset.run);
    }
    path.append(...runs.filter((run) => branch.has(run)));
    others.append(...runs.filter((run) => !branch.has(run)));
    for (const link of document.querySelectorAll(".fork a")) {
      const on = branch.has(runs[link.dataset.to]);
      if (on) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const link of document.querySelectorAll(".outline a")) {
      const entry = target(link.hash);
      const on = entry && branch.has(entry.closest(".run"));
      link.parentElement.classList.toggle("on", on);
      link.parentElement.classList.toggle("off", !on);
    }
  }

  function target(hash) {
    try {
      return hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    } catch {
      return null;
    }
  }

  function unfold(element) {
    for (let up = element; up; up = up.parentElement) if (up.localName === "details") up.open = true;
  }

  function follow() {
    const entry = target(location.hash);
    if (!entry) return;
    const run = entry.closest(".run");
    if (run && others && others.contains(run)) show(run);
    unfold(entry);
    entry.scrollIntoView();
  }

  // Search: what does not hold the words is hidden, what holds them is marked.
  const bar = document.createElement("div");
  const input = document.createElement("input");
  const found = document.createElement("output");
  const fold = document.createElement("button");
  bar.className = "bar";
  bar.setAttribute("role", "search");
  input.type = "search";
  input.placeholder = "Search (/)";
  input.setAttribute("aria-label", "Search in this session");
  fold.type = "button";
  fold.textContent = "Unfold all";
  bar.append(input, found, fold);
  document.querySelector(".top").after(bar);

  let texts = null;
  function search() {
    const words = input.value.trim().toLowerCase();
    if (!texts) {
      const entries = document.querySelectorAll(".run > .entry, .run > .mark");
      texts = [...entries].map((entry) => [entry, entry.textContent.toLowerCase()]);
    }
    const ranges = [];
    let hits = 0;
    for (const [entry, text] of texts) {
      const hit = words === "" || text.includes(words);
      entry.classList.toggle("miss", !hit);
      if (words === "" || !hit) continue;
      hits++;
      mark(entry, words, ranges);
    }
    for (const fork of document.querySelectorAll(".fork")) fork.classList.toggle("miss", words !== "");
    if (others && words !== "") others.open = others.querySelector(".run > :not(.miss)") !== null;
    if (window.Highlight) CSS.highlights.set("hit", new Highlight(...ranges));
    found.textContent = words === "" ? "" : hits === 1 ? "1 entry" : hits + " entries";
  }

  function mark(entry, words, ranges) {
    const walker = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT);
    for (let node; ranges.length < 2000 && (node = walker.nextNode()); ) {
      const text = node.data.toLowerCase();
      // Some letters change their length in lower case: then places in one text are not those in the other.
      if (text.length !== node.data.length) continue;
      for (let at = text.indexOf(words); at >= 0 && ranges.length < 2000; at = text.indexOf(words, at + words.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + words.length);
        ranges.push(range);
        unfold(node.parentElement);
      }
    }
  }

  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 150);
  });
  // Keys that fold and unfold one kind of thing.
  const kinds = { t: ".thinking", o: ".tool", h: ".silent" };
  function turn(kind) {
    const all = [...document.querySelectorAll(".run details" + kind)];
    const open = !all.some((details) => details.open);
    for (const details of all) details.open = open;
  }
  document.addEventListener("keydown", (event) => {
    const kind = kinds[event.key.toLowerCase()];
    if (kind && document.activeElement !== input && !event.ctrlKey && !event.metaKey && !event.altKey) {
      turn(kind);
    } else if (event.key === "/" && document.activeElement !== input && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && document.activeElement === input) {
      input.value = "";
      search();
      input.blur();
    }
  });
  fold.addEventListener("click", () => {
    const open = fold.textContent === "Unfold all";
    for (const details of document.querySelectorAll(".run details")) details.open = open;
    fold.textContent = open ? "Fold all" : "Unfold all";
  });

  const outline = document.querySelector(".outline details");
  outline.open = matchMedia("(min-width: 64rem)").matches;
  addEventListener("hashchange", follow);
  follow();
})();
