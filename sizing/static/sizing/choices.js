// Names the searchable choices after their labels: what draws them names them after their value alone.
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

// After the drawing, which waits for the document in the same way and was asked for before.
document.addEventListener("DOMContentLoaded", () => django.jQuery(nameChoices));
