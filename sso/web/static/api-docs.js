// Gives the viewer of /docs/api the colours of the system, light or dark, and on a phone a layout without a side bar.
const viewer = document.querySelector("rapi-doc");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const colours = {
  light: { theme: "light", "bg-color": "#fff", "text-color": "#191c26", "primary-color": "#3b50cf", "nav-bg-color": "#f3f4f8", "nav-text-color": "#191c26" },
  dark: { theme: "dark", "bg-color": "#191c26", "text-color": "#e9ebf2", "primary-color": "#a9b6ff", "nav-bg-color": "#101219", "nav-text-color": "#e9ebf2" },
};

function paint() {
  for (const [name, value] of Object.entries(colours[dark.matches ? "dark" : "light"])) viewer.setAttribute(name, value);
}

viewer.setAttribute("render-style", window.matchMedia("(max-width: 800px)").matches ? "view" : "focused");
paint();
dark.addEventListener("change", paint);
