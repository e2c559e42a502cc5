/**
 * xterm.js draws with `<style>` elements and `style` attributes, which a policy without `unsafe-inline` forbids. What
 * scripts do to style sheets, and to the style of an element, is not inline and is allowed: so both are led there.
 */

/** Do something during which the text of a new `<style>` becomes a style sheet of the page. */
export function withStrictStyles(work: () => void): void {
  const own = document as { createElement?: unknown };
  own.createElement = (tag: string): HTMLElement => (tag === "style" ? styleElement() : make(tag));
  try {
    work();
  } finally {
    delete own.createElement; // that of all documents holds again
  }
}

const make = document.createElement.bind(document);

/** Stands where the `<style>` would: what is written into it holds until it is removed. */
function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = make("template");
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", { set: (css: string) => sheet.replaceSync(css) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    HTMLElement.prototype.remove.call(element);
  };
  return element;
}

/** xterm colours the spans of a line with `setAttribute("style")`. */
HTMLSpanElement.prototype.setAttribute = function (name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};
