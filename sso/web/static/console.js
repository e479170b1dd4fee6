"use strict";
// Small comforts of the console. Every page works without them.

// A request of htmx that failed: say so, because the page looks as if nothing had happened.
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status !== 401) toast("The page could not be updated. Reload it to see what is wrong.");
});
document.addEventListener("htmx:sendError", () => toast("The service cannot be reached. The page may be out of date."));

let shown = null;
function toast(text) {
  shown?.remove();
  shown = document.createElement("div");
  shown.className = "toast box bad";
  shown.setAttribute("role", "alert");
  const line = document.createElement("p");
  line.textContent = text;
  shown.append(line);
  document.body.append(shown);
  const box = shown;
  setTimeout(() => box.remove(), 8000);
}

// Escape closes the menu on a phone.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && location.hash === "#menu") location.hash = "#main";
});

// Buttons that copy the field or the text that they name.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const text = "value" in source ? source.value : source.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    if (source.select) source.select();
    else getSelection().selectAllChildren(source);
  }
});
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

// Image files become data URIs in the field that they name.
document.addEventListener("change", (event) => {
  const name = event.target.dataset?.fileInto;
  if (!name || !event.target.files.length) return;
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const field = document.getElementById(name);
    field.value = reader.result;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  reader.readAsDataURL(event.target.files[0]);
});
for (const field of document.querySelectorAll("[data-file-field]")) field.hidden = false;
