// Names what draws itself: the searchable choices after their labels, which else are named after their value
// alone, and the signs beside the filters of long lists of choices.
"use strict";

function nameChoices() {
  for (const select of document.querySelectorAll("select.admin-autocomplete")) {
    const label = document.querySelector(`label[for="${select.id}"]`);
    const value = document.getElementById(`select2-${select.id}-container`);
    if (!label || !value) continue;
    label.id = `${select.id}-label`;
    for (const part of [value, value.closest("[role=combobox]")]) {
      part.setAttribute("aria-labelledby", `${label.id} ${value.id}`);
    }
  }
}

function nameSigns() {
  for (const sign of document.querySelectorAll(".search-label-icon[aria-label]")) sign.setAttribute("role", "img");
}

// After the drawing, which waits in the same ways and was asked for before.
document.addEventListener("DOMContentLoaded", () => window.django?.jQuery?.(nameChoices));
window.addEventListener("load", nameSigns);
