// Follows what runs: asks for the parts of this page that change, until all of it is over. Where
// `data-live-every` gives milliseconds it asks that often, else each second.
"use strict";

const AFTER_FAILURE_MS = 5000;
const SPOKEN_EVERY_MS = 10000;

const followed = document.querySelector("[data-live]");
const everyMs = Number(followed?.dataset.liveEvery ?? 1000);
const spoken = document.createElement("p");
spoken.className = "visually-hidden";
spoken.setAttribute("role", "status");
const lost = document.createElement("p");
lost.className = "desk-lost";
lost.setAttribute("role", "status");
if (followed) {
  followed.append(spoken, lost);
  setTimeout(follow, everyMs);
}

let spokenAt = 0;

async function follow() {
  if (document.hidden) return void setTimeout(follow, everyMs);
  try {
    const answer = await fetch(address(), { cache: "no-store", redirect: "error" });
    if (answer.status === 404) return end("It is not there any more. Reload the page.");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    lost.textContent = "";
    show(found);
    if (found.querySelector("[data-active=yes]")) setTimeout(follow, everyMs);
    else say(true);
  } catch {
    lost.textContent = "The desk does not answer; this page tries again every five seconds. Sign in again if that does not end.";
    setTimeout(follow, AFTER_FAILURE_MS);
  }
}

// A part that is large says by `data-live-have` which state of it is here; the desk sends it only anew.
function address() {
  const url = new URL(followed.dataset.live, location.href);
  for (const part of document.querySelectorAll("[data-live-have]")) {
    url.searchParams.set(part.dataset.liveHave, part.dataset.key);
  }
  return url;
}

function show(found) {
  for (const part of found.querySelectorAll("[data-part]")) {
    const old = document.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!old) continue;
    const same = "key" in part.dataset ? part.dataset.key === old.dataset.key : part.innerHTML === old.innerHTML;
    if (same) continue;
    // The element stays, so that whoever reads or listens there is not thrown out of it.
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    old.innerHTML = part.innerHTML;
    if (focused) likeness(old, focused)?.focus({ preventScroll: true });
    if ("key" in part.dataset) old.dataset.key = part.dataset.key;
    if (part.dataset.part === "state") spokenAt = 0;
  }
  say(false);
}

// What stands in a new part for an element of the old one: the same name, else the same link.
function likeness(part, gone) {
  const alike = [...part.querySelectorAll(gone.localName)].filter((one) => one.tabIndex >= 0 && one.id === gone.id);
  return alike.find((one) => one.getAttribute("href") === gone.getAttribute("href")) ?? (gone.id ? alike[0] : null);
}

// What is said aloud: the sentence and the numbers, not more often than one can listen to.
function say(last) {
  const now = Date.now();
  const sentence = document.querySelector("[data-part=sentence]");
  if (!sentence || (!last && now - spokenAt < SPOKEN_EVERY_MS)) return;
  spokenAt = now;
  const numbers = [...document.querySelectorAll("[data-part=numbers] dl > div")];
  const words = numbers.map((one) => `${one.querySelector("dt").textContent} ${one.querySelector("dd").textContent}`);
  spoken.textContent = `${sentence.textContent.trim()} ${words.join(", ")}`.trim();
}

function end(words) {
  lost.textContent = words;
}
