// Adds comfort to pages that are complete without it: shortcuts, copying, the theme, filters that apply themselves, menus
// that close, pages that refresh themselves, and the preview of colors.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

  // setUp prepares new parts of the page.
  const setUp = (root) => {
    all("[data-copy], [data-theme-switch]", root).forEach((button) => { button.hidden = false; });
    all("[data-filters] [data-apply]", root).forEach((button) => { button.hidden = true; });
  };

  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  const switchTheme = () => {
    const theme = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("theme", theme); } catch { /* storage is off */ }
  };

  const copy = async (button) => {
    const text = button.parentElement.querySelector("pre").textContent;
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-theme-switch]");
    if (button?.matches("[data-copy]")) copy(button);
    if (button?.matches("[data-theme-switch]")) switchTheme();
    all("details.dropdown[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-filters]");
    if (form) form.requestSubmit();
  });

  // Live: while the page is visible, a stream says when something has changed. Then the part with the id "live" is
  // replaced, unless a form in it is in use.
  const liveSwitch = document.querySelector("[data-live-switch]");
  const part = () => document.getElementById("live");
  let stream, since, retry, stale = false, loading = false;

  const inUse = () => part().querySelector("details[open] form") ||
    (part().contains(document.activeElement) && typing(document.activeElement));

  // label identifies an element across two versions of the page.
  const label = (element) => element.tagName + (element.id || element.name || element.getAttribute("href") || element.textContent.trim());

  const replace = (next) => {
    const focus = part().contains(document.activeElement) ? label(document.activeElement) : "";
    const open = new Set(all("details[open] > summary", part()).map(label));
    const scrolled = all(".table-box", part()).map((box) => box.scrollLeft);
    all("details > summary", next).forEach((summary) => { summary.parentElement.open ||= open.has(label(summary)); });
    part().replaceWith(next);
    setUp(next);
    all(".table-box", next).forEach((box, i) => { box.scrollLeft = scrolled[i] || 0; });
    if (focus) all("a, button, summary, [tabindex]", next).find((e) => label(e) === focus)?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (!part()) return;
    stale = true;
    if (loading || inUse()) return;
    loading = true;
    stale = false;
    try {
      const answer = await fetch(location.href, { headers: { "Deviceaccess-Refresh": "1" } });
      if (answer.redirected && new URL(answer.url).pathname.endsWith("/sign-in")) return location.assign(answer.url);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (answer.ok && !answer.redirected && next) inUse() ? stale = true : replace(document.adoptNode(next));
    } catch { /* the next change tries again */ }
    loading = false;
  };

  const follow = () => {
    clearTimeout(retry);
    stream?.close();
    stream = undefined;
    const on = liveSwitch.getAttribute("aria-pressed") === "true";
    if (!on || document.hidden || !part()) return;
    stream = new EventSource(liveSwitch.dataset.liveSwitch + "?since=" + since);
    stream.addEventListener("changed", (event) => { since = event.lastEventId; refresh(); });
    // The browser reconnects, except after a refusal. The session may have ended then: a refresh leads to the sign-in.
    stream.addEventListener("error", () => {
      if (stream.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(follow, 60000);
      refresh();
    });
  };

  const switchLive = (on) => {
    liveSwitch.setAttribute("aria-pressed", String(on));
    try { localStorage.setItem("live", on ? "on" : "off"); } catch { /* storage is off */ }
    follow();
  };

  if (liveSwitch && part()) {
    since = liveSwitch.dataset.since;
    let on = true;
    try { on = localStorage.getItem("live") !== "off"; } catch { /* storage is off */ }
    liveSwitch.hidden = false;
    liveSwitch.addEventListener("click", () => switchLive(liveSwitch.getAttribute("aria-pressed") !== "true"));
    document.addEventListener("visibilitychange", follow);
    for (const type of ["toggle", "focusout"]) {
      document.addEventListener(type, () => setTimeout(() => { if (stale && stream) refresh(); }), true);
    }
    liveSwitch.setAttribute("aria-pressed", String(on));
    follow();
  }

  // The preview of a connect page takes its colors and texts from the form while they are entered.
  const preview = (field) => {
    const shown = document.querySelector("[data-preview]");
    const { previewColor, previewText } = field.dataset;
    if (previewColor) {
      shown.style.setProperty(previewColor, CSS.supports("color", field.value.trim()) ? field.value.trim() : "");
    }
    if (previewText) {
      const text = shown.querySelector("[data-shows=" + previewText + "]");
      text.dataset.saved ??= text.textContent;
      text.textContent = field.value.trim() || text.dataset.saved;
    }
  };
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-preview-color], [data-preview-text]")) preview(event.target);
  });

  // Empty filters stay out of the URL.
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-filters]")) {
      all("input, select", event.target).forEach((field) => { field.disabled = field.value === ""; });
    }
  });

  // move selects the next or the previous row.
  const move = (by) => {
    const rows = all("[data-rows] tbody tr");
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by, 0), rows.length - 1)];
    const link = row.querySelector("a");
    if (link) { link.focus(); row.scrollIntoView({ block: "nearest" }); }
  };

  const go = { t: "", l: "/locks", c: "/codes", p: "/people", a: "/accounts", w: "/webhooks" };
  let leading = false;
  const jump = (key) => {
    leading = false;
    const base = location.pathname.match(/^.*\/console\/w\/[0-9a-f-]+/);
    if (base && key in go) location.href = base[0] + go[key];
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") all("details.dropdown[open]").forEach((menu) => { menu.open = false; });
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (leading) return jump(event.key);
    const act = {
      "/": () => document.querySelector("[data-search]")?.focus(),
      "?": () => document.getElementById("shortcuts")?.showModal(),
      j: () => move(1),
      k: () => move(-1),
      g: () => { leading = true; setTimeout(() => { leading = false; }, 1000); },
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  // The navigation is open on wide screens, where it has no switch, and closed on narrow ones.
  const narrow = matchMedia("(max-width: 1023px)");
  const fold = () => all(".nav-drawer").forEach((drawer) => { drawer.open = !narrow.matches; });
  narrow.addEventListener("change", fold);
  fold();
  setUp(document);
  document.addEventListener("htmx:afterSettle", (event) => setUp(event.target));
})();
