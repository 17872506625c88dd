// Applies the chosen theme before the page is drawn. Without a choice, the stylesheet follows the system.
"use strict";
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage is off */ }
