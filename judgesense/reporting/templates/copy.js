"use strict";
/** Put a text on the clipboard, and say so on the button. @param {HTMLElement} button @param {string} text */
const copyText = async (button, text) => {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // A page that was opened from a disk may have no clipboard of its own.
    const area = document.createElement("textarea");
    area.value = text;
    button.after(area);
    area.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Not allowed";
    area.remove();
  }
  setTimeout(() => { button.textContent = name; }, 1500);
};
for (const text of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => copyText(button, text.textContent || ""));
  text.after(button);
}
