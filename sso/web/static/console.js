"use strict";
// Small comforts of the console. Every page works without them.

// A request of htmx that failed: say so, because the page looks as if nothing had happened.
document.addEventListener("htmx:responseError", (event) => {
  const { status, responseText } = event.detail.xhr;
  if (status === 429) toast(new DOMParser().parseFromString(responseText, "text/html").body.textContent.trim());
  else if (status !== 401) toast("The page could not be updated. Reload it to see what is wrong.");
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

// The address of a list has only the filters that are set.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.verb !== "get") return;
  for (const [name, value] of Object.entries(detail.parameters)) if (value === "") delete detail.parameters[name];
});

// Escape closes the menu on a phone.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && location.hash === "#menu") location.hash = "#main";
});

// Buttons that copy the id of a record, and buttons that copy the field or the text that they name.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-text]");
  if (!button) return;
  const id = button.dataset.copyText;
  const source = id ? button.parentElement.querySelector(".named-id") : document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(id ?? ("value" in source ? source.value : source.textContent));
  } catch {  // browsers have no clipboard for pages over plain http: the text is selected instead
    if (id) source.style.display = "inline";
    if (source.select) source.select();
    else getSelection().selectAllChildren(source);
    return;
  }
  button.classList.add("copied");
  (id ? button.querySelector(".unseen") : button).textContent = "Copied";
});
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

// A file that is chosen becomes the text of a field, which is sent and shown; an image becomes a data URI.
for (const input of document.querySelectorAll("[data-into]")) {
  input.closest("[data-needs-script]").hidden = false;
  input.addEventListener("change", async () => {
    if (!input.files.length) return;
    const field = document.getElementById(input.dataset.into);
    field.value = input.dataset.as === "data-uri" ? await dataUri(input.files[0]) : await input.files[0].text();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

function dataUri(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

// A form whose action may take long says so until the next page arrives.
for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", () => {
    const box = document.createElement("div");
    box.className = "box note busy";
    box.setAttribute("role", "status");
    const line = document.createElement("p");
    line.textContent = form.dataset.busy;
    box.append(line, document.createElement("progress"));
    form.append(box);
    setTimeout(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
  });
}
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;  // the back button brings the page back as it was left
  document.querySelectorAll(".busy").forEach((box) => box.remove());
  document.querySelectorAll("form[data-busy] button").forEach((button) => (button.disabled = false));
});

// Editors. htmx:load is sent for the page and for each part that replaces another one.
document.addEventListener("htmx:load", (event) => {
  const part = event.detail.elt;
  for (const input of part.querySelectorAll("[data-filter]")) {
    input.hidden = false;
    input.addEventListener("input", (typing) => {
      typing.stopPropagation();  // the form need not be checked
      for (const item of document.querySelectorAll(input.dataset.filter)) {
        item.hidden = !item.textContent.toLowerCase().includes(input.value.trim().toLowerCase());
      }
    });
    input.addEventListener("keydown", (key) => key.key === "Enter" && key.preventDefault());
  }
  if (part.id === "document") part.closest("form").dispatchEvent(new Event("rowsChanged"));
});

// Suggestions for the value of a row of a condition, by what the row compares.
let suggesting = null;
async function suggest(input) {
  const member = input.closest(".condition-row").querySelector("select").value;
  const search = member === "uid" ? input.value.split(/[\s,]+/).pop() : input.value;
  suggesting?.abort();
  suggesting = new AbortController();
  try {
    const answer = await fetch(`/console/users/suggestions?${new URLSearchParams({ member, search })}`, { signal: suggesting.signal });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = input.value.slice(0, input.value.length - search.length);  // other users of the same row
    const options = [...page.querySelectorAll("option")];
    for (const option of options) option.value = before + option.value;
    document.getElementById("suggested").replaceChildren(...options);
  } catch {
    // The field works without suggestions.
  }
}
let typed = 0;
for (const kind of ["focusin", "input"]) {
  document.addEventListener(kind, (event) => {
    if (!event.target.matches?.("[data-suggest]")) return;
    clearTimeout(typed);
    typed = setTimeout(suggest, 200, event.target);
  });
}

// Ctrl-K, or a slash outside of fields, opens the search over everything. Arrow keys move through what it finds, and Enter
// opens the first hit.
const finder = document.getElementById("finder");
if (finder) {
  const field = finder.querySelector("input");
  const open = () => {
    const page = document.getElementById("q");
    if (page) page.focus();
    else if (!finder.open) finder.showModal();
    (page ?? field).select();
  };
  document.querySelector("[data-opens=finder]").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  finder.querySelector("[data-closes]").addEventListener("click", () => finder.close());
  finder.addEventListener("click", (event) => event.target === finder && finder.close());
  document.addEventListener("keydown", (event) => {
    const isField = event.target.matches?.("input, textarea, select, [contenteditable]");
    const isShortcut = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    const isSlash = event.key === "/" && !isField && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!isShortcut && !isSlash) return;
    event.preventDefault();
    open();
  });
  finder.addEventListener("keydown", (event) => {
    const hits = [...finder.querySelectorAll("#finder-hits a")];
    if (event.key === "Enter" && event.target === field && hits.length) {
      event.preventDefault();
      hits[0].click();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const stops = [field, ...hits];
    const step = event.key === "ArrowDown" ? 1 : stops.length - 1;
    stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length]?.focus();
  });
}
