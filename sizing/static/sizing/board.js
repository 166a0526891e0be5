// The key "/" leads to the question, unless somebody writes.
"use strict";

const question = document.getElementById("ask-model");
const hint = document.querySelector(".board-slash");
if (question && hint) hint.hidden = false;

document.addEventListener("keydown", (press) => {
  if (!question || press.key !== "/" || press.ctrlKey || press.metaKey || press.altKey) return;
  if (press.target.closest("input, select, textarea, [contenteditable]")) return;
  press.preventDefault();
  question.focus();
  question.select();
});
