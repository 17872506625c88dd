// Registers passkeys and signs in with them: the forms with data-passkey, which stay hidden in browsers without passkeys.
"use strict";
(() => {
  if (!window.PublicKeyCredential) return;

  const toBytes = (text) => {
    const padded = text.replace(/-/g, "+").replace(/_/g, "/");
    return Uint8Array.from(atob(padded), (c) => c.charCodeAt(0));
  };
  const toText = (buffer) => buffer && btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  // decode turns the texts of options that are bytes into bytes.
  const decode = (options) => {
    options.challenge = toBytes(options.challenge);
    if (options.user) options.user.id = toBytes(options.user.id);
    for (const list of [options.excludeCredentials, options.allowCredentials]) {
      (list || []).forEach((credential) => { credential.id = toBytes(credential.id); });
    }
    return options;
  };

  const encode = (credential) => {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      const value = credential.response[name];
      if (value) response[name] = toText(value);
    }
    if (credential.response.getTransports) response.transports = credential.response.getTransports();
    return JSON.stringify({
      id: credential.id,
      rawId: toText(credential.rawId),
      type: credential.type,
      authenticatorAttachment: credential.authenticatorAttachment || undefined,
      clientExtensionResults: credential.getClientExtensionResults(),
      response,
    });
  };

  const run = async (form) => {
    const body = new URLSearchParams();
    const secret = form.elements.namedItem("csrf");
    if (secret) body.set("csrf", secret.value);
    const answer = await fetch(form.dataset.options, { method: "POST", body, redirect: "error" });
    if (!answer.ok) throw new Error("options");
    const { options, state } = await answer.json();
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey: decode(options.publicKey) });
    form.elements.namedItem("state").value = state;
    form.elements.namedItem("answer").value = encode(credential);
    form.submit();
  };

  document.querySelectorAll("form[data-passkey]").forEach((form) => {
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      const problem = form.querySelector("[data-passkey-problem]");
      problem.hidden = true;
      button.disabled = true;
      try {
        await run(form);
      } catch {
        problem.textContent = "The passkey was not used. Try again, or sign in another way.";
        problem.hidden = false;
        button.disabled = false;
      }
    });
  });
})();
