import { renderMermaid } from "beautiful-mermaid";
import "./diagram.css";

const LONGEST = 20_000;
const KEPT = 100;
const made = new Map<string, Promise<string>>();

/** Put the picture of a Mermaid diagram above its source, which stays where it cannot be read. */
export function drawDiagram(figure: HTMLElement): void {
  const source = figure.querySelector("code")?.textContent ?? "";
  if (source.length > LONGEST) return;
  void pictureOf(source).then(
    (url) => {
      if (figure.classList.contains("drawn")) return;
      const image = document.createElement("img");
      image.alt = `Diagram: ${source.trim().split("\n")[0] ?? ""}`;
      image.src = url;
      figure.querySelector("pre")?.before(image);
      figure.classList.add("drawn");
    },
    () => {}, // a kind of diagram that is not known here
  );
}

/** A text is drawn anew with every piece that arrives; its diagrams are not. */
function pictureOf(source: string): Promise<string> {
  const known = made.get(source) ?? draw(source);
  made.delete(source);
  made.set(source, known);
  if (made.size > KEPT) made.delete(made.keys().next().value as string);
  return known;
}

/**
 * In an `<img>` an SVG runs nothing, fetches nothing, and may have styles of its own, so the page's policy stays as it
 * is. The colours are the page's, as `light-dark()`: they follow its theme.
 */
async function draw(source: string): Promise<string> {
  const tokens = getComputedStyle(document.documentElement);
  const color = (name: string): string => tokens.getPropertyValue(`--${name}`).trim();
  const svg = await renderMermaid(source.trim(), {
    bg: color("sunken"),
    fg: color("text"),
    muted: color("muted"),
    line: color("muted"),
    accent: color("muted"),
    surface: color("surface"),
    border: color("line-strong"),
    font: "system-ui",
    padding: 8,
    transparent: true,
  });
  const own = svg.replaceAll(/@import url\('[^']*'\);/g, "").replace(/ style="/, ' style="color-scheme:light dark;');
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(own)}`;
}
