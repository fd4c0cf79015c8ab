/* The theme adds a navigation landmark to every block of code: give each a name of its own. */
const named = () => document.querySelectorAll(".md-code__nav:not([aria-label])").forEach(nav => {
  const all = [...document.querySelectorAll(".md-code__nav")];
  nav.setAttribute("aria-label", `Code block ${all.indexOf(nav) + 1}`);
});
new MutationObserver(named).observe(document.documentElement, { childList: true, subtree: true });
named();
document.querySelector("[data-md-component=search][role=dialog]")?.setAttribute("aria-label", "Search");
