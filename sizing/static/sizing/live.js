// Follows what runs: asks each second for the parts of this page that change, until all of it is over.
"use strict";

const EVERY_MS = 1000;
const AFTER_FAILURE_MS = 5000;
const SPOKEN_EVERY_MS = 10000;

const followed = document.querySelector("[data-live]");
const spoken = document.createElement("p");
spoken.className = "visually-hidden";
spoken.setAttribute("role", "status");
const lost = document.createElement("p");
lost.className = "desk-lost";
lost.setAttribute("role", "status");
if (followed) {
  followed.append(spoken, lost);
  setTimeout(follow, EVERY_MS);
}

let spokenAt = 0;

async function follow() {
  if (document.hidden) return void setTimeout(follow, EVERY_MS);
  try {
    const answer = await fetch(followed.dataset.live, { cache: "no-store", redirect: "error" });
    if (answer.status === 404) return end("It is not there any more. Reload the page.");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    lost.textContent = "";
    show(found);
    if (found.querySelector("[data-active=yes]")) setTimeout(follow, EVERY_MS);
    else say(true);
  } catch {
    lost.textContent = "The desk does not answer; this page tries again every five seconds. Sign in again if that does not end.";
    setTimeout(follow, AFTER_FAILURE_MS);
  }
}

function show(found) {
  for (const part of found.querySelectorAll("[data-part]")) {
    const old = document.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!old) continue;
    const same = "key" in part.dataset ? part.dataset.key === old.dataset.key : part.innerHTML === old.innerHTML;
    if (same) continue;
    // The element stays, so that whoever reads or listens there is not thrown out of it.
    old.innerHTML = part.innerHTML;
    if ("key" in part.dataset) old.dataset.key = part.dataset.key;
    if (part.dataset.part === "state") spokenAt = 0;
  }
  say(false);
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
