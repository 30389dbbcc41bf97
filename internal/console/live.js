// Keeps the page as the cluster is, without loading it again. A page works without this.
"use strict";
const button = document.createElement("button");
let source;

function show(event) {
  const main = document.querySelector("main");
  const selected = getSelection();
  // What somebody marks or has reached by keyboard stays.
  if (main.contains(document.activeElement) || (!selected.isCollapsed && main.contains(selected.anchorNode))) return;
  const open = [...main.querySelectorAll("details")].map((d) => d.open);
  const fresh = new DOMParser().parseFromString("<main>" + event.data + "</main>", "text/html").querySelector("main");
  main.replaceWith(fresh);
  fresh.querySelectorAll("details").forEach((d, i) => { d.open = Boolean(open[i]); });
}

function follow() {
  source = new EventSource(location.href);
  source.addEventListener("page", show);
  source.addEventListener("end", pause);
  button.textContent = "Pause";
}

function pause() {
  source.close();
  source = null;
  button.textContent = "Follow";
}

button.addEventListener("click", () => (source ? pause() : follow()));
document.querySelector("nav").append(button);
follow();
