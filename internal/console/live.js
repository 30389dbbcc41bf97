// Keeps the page as the cluster is, without loading it again. A page works without this.
"use strict";
// How long a refused page waits until it asks again: the operator may have begun anew, or have too many readers.
const refusedFor = 60000;
const button = document.createElement("button");
let source, again;
// What came and is not shown yet.
let held = null;

function isInUse(main) {
  const selected = getSelection();
  return main.contains(document.activeElement) || (!selected.isCollapsed && main.contains(selected.anchorNode));
}

// What somebody marks or has reached by keyboard stays as long as it is in use.
function show() {
  const main = document.querySelector("main");
  if (held === null || isInUse(main)) return;
  const open = [...main.querySelectorAll("details")].map((d) => d.open);
  const fresh = new DOMParser().parseFromString("<main>" + held + "</main>", "text/html").querySelector("main");
  held = null;
  main.replaceWith(fresh);
  fresh.querySelectorAll("details").forEach((d, i) => { d.open = Boolean(open[i]); });
}

function hold(event) {
  held = event.data;
  show();
}

function follow() {
  clearTimeout(again);
  const begun = source = new EventSource(location.href);
  source.addEventListener("page", hold);
  // The reader may see the page no longer: its last event says why.
  source.addEventListener("end", (event) => { pause(); hold(event); });
  // A browser asks again by itself after a lost connection, and not after a refusal.
  source.addEventListener("error", () => {
    if (begun.readyState !== EventSource.CLOSED || source !== begun) return;
    pause();
    again = setTimeout(follow, refusedFor);
  });
  button.textContent = "Pause";
}

function pause() {
  held = null;
  source.close();
  source = null;
  button.textContent = "Follow";
}

document.addEventListener("selectionchange", show);
document.addEventListener("focusout", () => setTimeout(show));
button.addEventListener("click", () => (source ? pause() : follow()));
document.querySelector("nav").append(button);
follow();
