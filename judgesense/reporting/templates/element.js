"use strict";
/** A new element. Texts become text nodes, so that none of them acts.
 * @param {string} name @param {Record<string, unknown>} [attributes] @param {...(Node | string)} content */
const element = (name, attributes = {}, ...content) => {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, String(value)));
  made.append(...content);
  return made;
};
