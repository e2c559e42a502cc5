import temml from "temml";
import "./math.css";

/** As MathML, which the browser itself draws: no fonts to fetch, and no inline style for the policy to forbid. */
export function drawFormula(element: HTMLElement): void {
  const source = element.textContent ?? "";
  const displayMode = element.classList.contains("block");
  const drawn = document.createElement("span");
  try {
    temml.render(source, drawn, { displayMode, throwOnError: true, annotate: true, trust: false, maxExpand: 1000, maxSize: [40, 40] });
  } catch {
    return; // half of it may still be on its way, or it was none: the source says as much
  }
  element.replaceChildren(...drawn.childNodes);
  element.classList.add("drawn");
}
