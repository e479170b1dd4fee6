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
