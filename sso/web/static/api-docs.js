// The pages of /docs/api: finds operations in the menu, and sends requests to this service with a token that is pasted.
const find = document.querySelector(".find");
find.hidden = false;
find.querySelector("input").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const link of document.querySelectorAll("nav a[data-words]")) {
    const text = `${link.dataset.words} ${link.textContent}`.toLowerCase();
    link.parentElement.hidden = !words.every((word) => text.includes(word));
  }
});

const form = document.querySelector("form.try");

function address() {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("[data-in]")) {
    if (input.dataset.in === "path") path = path.replace(`{${input.dataset.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.set(input.dataset.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

function show(title, text) {
  const head = document.createElement("p");
  const body = document.createElement("pre");
  head.textContent = title;
  body.textContent = text;
  form.querySelector("output").replaceChildren(head, body);
}

async function send(event) {
  event.preventDefault();
  const { token, factor, body } = form.elements;
  const headers = {};
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  if (factor.value) headers.Factor = factor.value;
  if (body) headers["Content-Type"] = "application/json";
  for (const field of [token, factor]) sessionStorage.setItem(`api-docs ${field.name}`, field.value);
  // No cookies and no redirects: the credentials are the token, and only this service gets it.
  const options = { method: form.dataset.method, headers, body: body?.value || undefined };
  try {
    const answer = await fetch(address(), { ...options, credentials: "omit", redirect: "error", cache: "no-store" });
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* no JSON */ }
    show(`${answer.status} ${answer.statusText}`, shown);
  } catch (error) {
    show("The request could not be sent.", error.message);
  }
}

if (form) {
  form.hidden = false;
  for (const name of ["token", "factor"]) form.elements[name].value = sessionStorage.getItem(`api-docs ${name}`) ?? "";
  form.addEventListener("submit", send);
  form.querySelector("[data-forget]").addEventListener("click", () => {
    for (const name of ["token", "factor"]) {
      sessionStorage.removeItem(`api-docs ${name}`);
      form.elements[name].value = "";
    }
  });
}
