"use strict";
// Adds a button to each password field that shows what was typed. Without JavaScript there is no button.
for (const field of document.querySelectorAll("input[type=password][data-show]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "reveal";
  button.setAttribute("aria-controls", field.id);
  const update = () => {
    const shown = field.type === "text";
    button.textContent = shown ? field.dataset.hide : field.dataset.show;
  };
  button.addEventListener("click", () => {
    field.type = field.type === "text" ? "password" : "text";
    update();
    field.focus();
  });
  // Browsers remember what was typed in text fields.
  field.form.addEventListener("submit", () => {
    field.type = "password";
    update();
  });
  const box = document.createElement("div");
  box.className = "with-reveal";
  const hadFocus = document.activeElement === field;
  field.replaceWith(box);
  box.append(field, button);
  if (hadFocus) field.focus();
  update();
}

// A code of six digits is sent when it is complete. Unless it was pasted, it waits a second: it may be the beginning of a
// recovery code.
for (const field of document.querySelectorAll("input[data-submits]")) {
  let waiting = 0;
  field.addEventListener("input", (event) => {
    clearTimeout(waiting);
    if (!/^\s*\d{3}\s?\d{3}\s*$/.test(field.value)) return;
    const send = () => field.form.checkValidity() && field.form.requestSubmit();
    waiting = setTimeout(send, event.inputType === "insertFromPaste" ? 0 : 1000);
  });
  field.form.addEventListener("submit", () => clearTimeout(waiting));
}
