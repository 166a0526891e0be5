// Copy buttons: shown only where the browser can copy, so that nothing is offered that does not work.
"use strict";

function offerCopies() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) {
    button.hidden = false;
    const label = button.textContent;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  }
}

offerCopies();
// A page that shows something else in place says so.
document.addEventListener("desk:shown", offerCopies);
