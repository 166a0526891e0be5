// Answers while one types: asks for this page with the question as it stands, and shows that answer in place.
"use strict";

const TYPING_MS = 350;
const OLD_MS = 15000;

const form = document.getElementById("question");
const part = document.getElementById("answer-part");
const said = document.getElementById("answer-status");

let shown = question();
let meant = shown;  // the last question that was not only half typed: its answer is kept
let shownAt = Date.now();
let timer = 0;
let running = null;

form.addEventListener("input", () => later(TYPING_MS, true));
form.addEventListener("change", () => later(0, false));
form.addEventListener("submit", stop);
// Who comes back to a page left open reads what is true now.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && part.querySelector("#answer") && Date.now() - shownAt > OLD_MS) ask(false, true);
});

// The question's query string as a link has it: without what is left empty.
function question() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) query.append(name, value.trim());
  return query.toString();
}

function later(wait, typing) {
  stop();
  timer = setTimeout(ask, wait, typing, false);
}

function stop() {
  clearTimeout(timer);
  running?.abort();
  running = null;
  part.removeAttribute("aria-busy");
}

async function ask(typing, again) {
  const query = question();
  const known = query === shown && (typing || query === meant);
  if (!form.elements.tokens_per_sec.value.trim() || (known && !again)) return;
  stop();
  const mine = running = new AbortController();
  part.setAttribute("aria-busy", "true");
  try {
    // As it was asked last, the same nodes stay picked.
    const url = query === shown ? location.href : `${location.pathname}?${query}`;
    const headers = typing ? { "X-Typing": "1" } : {};
    const answer = await fetch(url, { headers, signal: mine.signal, cache: "no-store", redirect: "error" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    show(found.getElementById("answer-part"));
    if (query !== shown && part.querySelector("#answer")) history.replaceState(null, "", url);
    shown = query;
    if (!typing) meant = query;
    shownAt = Date.now();
  } catch (error) {
    if (error.name === "AbortError") return;
    said.textContent = "The desk does not answer. Press Ask; sign in again if it asks for that.";
    said.classList.remove("visually-hidden");
  }
  if (running === mine) stop();
}

function show(found) {
  const held = part.contains(document.activeElement) ? document.activeElement : null;
  const error = found.querySelector("#question-error");
  error?.removeAttribute("role");  // it is said below, politely, for it may be half a number
  const open = [...part.querySelectorAll("details[open]")].map((one) => one.className);
  part.replaceChildren(...found.childNodes);
  for (const one of part.querySelectorAll("details")) one.open = open.includes(one.className);
  if (held) alike(held)?.focus({ preventScroll: true });
  const number = form.elements.tokens_per_sec;
  for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", "question-error"]]) {
    if (error) number.setAttribute(name, value);
    else number.removeAttribute(name);
  }
  said.classList.add("visually-hidden");
  const words = (error || part.querySelector("#answer"))?.textContent.trim().replace(/\s+/g, " ") || "";
  if (said.textContent !== words) said.textContent = words;
  document.dispatchEvent(new Event("desk:shown"));
}

// Who was at something that is there again stays at it.
function alike(held) {
  const same = [...part.querySelectorAll(held.tagName)];
  return same.find((one) => one.id === held.id && one.textContent === held.textContent);
}
