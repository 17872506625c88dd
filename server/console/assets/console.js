// Adds comfort to pages that are complete without it: shortcuts, copying, the theme, filters that apply themselves, and
// menus that close.
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
  const follow = (key) => {
    leading = false;
    const base = location.pathname.match(/^.*\/console\/w\/[0-9a-f-]+/);
    if (base && key in go) location.href = base[0] + go[key];
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") all("details.dropdown[open]").forEach((menu) => { menu.open = false; });
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (leading) return follow(event.key);
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
