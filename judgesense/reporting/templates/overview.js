"use strict";
// Finds series and runs by their text, and shows two ticked runs side by side.
(() => {
  const find = /** @type {HTMLInputElement} */ (document.getElementById("find"));
  const beside = /** @type {HTMLElement} */ (document.getElementById("beside"));
  const pair = /** @type {HTMLElement} */ (beside.querySelector(".pair"));
  const series = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".series"));

  const holds = (/** @type {HTMLElement} */ part, /** @type {string} */ text) =>
    (part.dataset.text || "").toLowerCase().includes(text);

  find.addEventListener("input", () => {
    const text = find.value.trim().toLowerCase();
    for (const one of series) {
      const rows = /** @type {NodeListOf<HTMLElement>} */ (one.querySelectorAll(".run"));
      const whole = holds(one, text);
      for (const row of rows) row.hidden = !whole && !holds(row, text);
      one.hidden = !whole && [...rows].every((row) => row.hidden);
    }
  });

  // A run as a list: the heading of each column, and its cell.
  const listed = (/** @type {HTMLTableRowElement} */ row) => {
    const box = document.createElement("div");
    box.className = "panel";
    const table = /** @type {HTMLTableElement} */ (row.closest("table"));
    const section = /** @type {HTMLElement} */ (row.closest(".series"));
    const title = document.createElement("h3");
    title.textContent = section.dataset.text || "";
    const list = document.createElement("dl");
    const heads = /** @type {HTMLTableSectionElement} */ (table.tHead).rows[0].cells;
    [...row.cells].slice(0, -1).forEach((cell, at) => {
      const name = document.createElement("dt");
      name.textContent = heads[at].textContent;
      const value = document.createElement("dd");
      value.append(...[...cell.cloneNode(true).childNodes]);
      list.append(name, value);
    });
    box.append(title, list);
    return box;
  };

  /** @type {HTMLInputElement[]} */
  let ticked = [];
  document.addEventListener("change", (event) => {
    const box = /** @type {HTMLInputElement} */ (event.target);
    if (box.type !== "checkbox") return;
    ticked = ticked.filter((other) => other !== box);
    if (box.checked) ticked.push(box);
    while (ticked.length > 2) /** @type {HTMLInputElement} */ (ticked.shift()).checked = false;
    const rows = ticked.map((one) => /** @type {HTMLTableRowElement} */ (one.closest("tr")));
    pair.replaceChildren(...rows.map(listed));
    const pages = rows.map((row) => row.dataset.page || "");
    const links = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("a[data-of]"));
    const link = [...links].find((one) => (one.dataset.of || "").split(" ").sort().join() === pages.sort().join());
    if (link) {
      const line = document.createElement("p");
      line.append("Changed verdicts: ", link.cloneNode(true));
      pair.append(line);
    }
    beside.hidden = ticked.length < 2;
    if (ticked.length === 2) beside.scrollIntoView({ block: "nearest" });
  });
})();
