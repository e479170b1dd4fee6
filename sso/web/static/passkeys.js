// Passkeys: buttons with data-passkey ("get" or "create") ask the browser for a passkey with the options that the page
// contains as JSON, put the answer into the field "credential" of their form, and send it.
"use strict";

(() => {
  if (!window.PublicKeyCredential || !navigator.credentials) return;

  const toBytes = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  const readOptions = (id) => {
    const options = JSON.parse(document.getElementById(id).textContent);
    options.challenge = toBytes(options.challenge);
    if (options.user) options.user.id = toBytes(options.user.id);
    for (const credential of [...(options.allowCredentials || []), ...(options.excludeCredentials || [])]) {
      credential.id = toBytes(credential.id);
    }
    return options;
  };

  const toJson = (credential) => {
    const { response } = credential;
    const answer = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (response[name]) answer[name] = toText(response[name]);
    }
    if (response.getTransports) answer.transports = response.getTransports();
    return JSON.stringify({
      id: credential.id,
      rawId: toText(credential.rawId),
      type: credential.type,
      authenticatorAttachment: credential.authenticatorAttachment || undefined,
      clientExtensionResults: credential.getClientExtensionResults(),
      response: answer,
    });
  };

  const send = (form, credential) => {
    form.elements.credential.value = toJson(credential);
    form.submit(); // without checking the other fields, which the passkey replaces
  };

  // The autofill of the sign-in form waits until another request takes its place.
  let waiting = null;
  const autofill = async (form, options) => {
    if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    waiting = new AbortController();
    try {
      send(form, await navigator.credentials.get({
        publicKey: readOptions(options), mediation: "conditional", signal: waiting.signal,
      }));
    } catch {
      // The button is still there.
    }
  };

  const ask = async (button, form) => {
    const problem = (button.closest(".passkey") || form).querySelector("[data-passkey-problem]");
    if (problem) problem.hidden = true;
    const creates = button.dataset.passkey === "create";
    if (creates && !form.reportValidity()) return;
    waiting?.abort();
    button.disabled = true;
    try {
      const publicKey = readOptions(button.dataset.options);
      send(form, await navigator.credentials[creates ? "create" : "get"]({ publicKey }));
    } catch {
      if (problem) {
        problem.setAttribute("role", "alert");
        problem.hidden = false;
      }
      button.disabled = false;
    }
  };

  for (const button of document.querySelectorAll("[data-passkey]")) {
    const { form } = button;
    const options = JSON.parse(document.getElementById(button.dataset.options).textContent);
    const host = options.rpId || options.rp.id;
    if (location.hostname !== host && !location.hostname.endsWith(`.${host}`)) {
      const hint = form.querySelector("[data-passkey-elsewhere]");
      if (hint) {
        const link = document.createElement("a");
        link.href = location.href.replace(location.hostname, host);
        link.textContent = link.href;
        hint.querySelector("[data-passkey-address]").replaceWith(link);
        hint.hidden = false;
      }
      continue;
    }
    button.hidden = false;
    button.addEventListener("click", () => ask(button, form));
    if ("autofill" in button.dataset) autofill(form, button.dataset.options);
  }
})();
