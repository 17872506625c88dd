// Adds what needs a script to the pages, which are complete without it.
(function () {
  "use strict";

  // addShowButton adds a button that shows what is in a field with a secret.
  function addShowButton(input) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "show";
    button.textContent = input.dataset.show;
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-controls", input.id);
    button.addEventListener("click", function () {
      var shown = input.type === "text";
      input.type = shown ? "password" : "text";
      button.setAttribute("aria-pressed", String(!shown));
    });
    // Browsers store what is in text fields.
    input.form.addEventListener("submit", function () {
      input.type = "password";
      button.setAttribute("aria-pressed", "false");
    });
    input.after(button);
    delete input.dataset.show;
  }

  // simplify does what the function of this name on the server does.
  function simplify(text) {
    return text.normalize("NFKD").replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();
  }

  // addFilter filters a list while the person types.
  function addFilter(form) {
    var input = form.querySelector("input[type=search]");
    var status = form.querySelector("[role=status]");
    var items = document.getElementById(form.dataset.filters).children;
    delete form.dataset.filters;
    input.addEventListener("input", function () {
      var wanted = simplify(input.value);
      var shown = 0;
      Array.prototype.forEach.call(items, function (item) {
        var matches = simplify(item.querySelector(".name").textContent).indexOf(wanted) >= 0;
        item.hidden = !matches;
        shown += matches ? 1 : 0;
      });
      status.textContent = shown ? "" : status.dataset.none;
    });
  }

  function enhance(root) {
    root.querySelectorAll("input[data-show]").forEach(addShowButton);
    root.querySelectorAll("form[data-filters]").forEach(addFilter);
  }

  enhance(document);
  document.addEventListener("htmx:load", function (event) {
    enhance(event.detail.elt);
  });
})();
