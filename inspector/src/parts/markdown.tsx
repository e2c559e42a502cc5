import MarkdownIt from "markdown-it";
import { memo, type MouseEvent, useMemo, useRef } from "react";
import { useDrawings } from "./drawings";
import { formulas } from "./formulas";
import { type Highlight, useHighlight } from "./highlight";
import { tasks } from "./tasks";
import "./highlight.css";
import "./markdown.css";

/**
 * Agents' text is hostile until shown otherwise: no HTML, no images from anywhere, links only to the web and only
 * in a new tab. The page's content security policy says the same once more.
 */
const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true }).use(tasks).use(formulas);
const DIRECTED = /^(paragraph|heading|bullet_list|ordered_list|blockquote|table)_open$/;
const WEB = /^(https?:|mailto:)/i;

markdown.validateLink = (url) => WEB.test(url.trim());
markdown.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  const source = String(token?.attrGet("src") ?? "");
  return `<span class="no-image">${escapeHtml(token?.content || "image")} (${escapeHtml(source)})</span>`;
};
markdown.renderer.rules.link_open = (tokens, index, options, _env, self) => {
  tokens[index]?.attrSet("target", "_blank");
  tokens[index]?.attrSet("rel", "noopener noreferrer nofollow");
  return self.renderToken(tokens, index, options);
};
/** A code block says its language and can be copied; a diagram that is there to its end is drawn. */
markdown.renderer.rules.fence = (tokens, index, _options, env) => {
  const { content = "", info = "", map } = tokens[index] ?? {};
  const language = info.trim().split(/\s+/)[0] ?? "";
  const html = (env as Environment | undefined)?.highlight?.(content, language.toLowerCase()) ?? escapeHtml(content);
  const copy = `<button type="button" class="quiet small" data-copy>Copy</button>`;
  const isClosed = map != null && map[1] - map[0] === content.split("\n").length + 1;
  const isDiagram = language.toLowerCase() === "mermaid" && isClosed;
  const source = isDiagram ? `<button type="button" class="quiet small" data-source aria-pressed="false">Source</button>` : "";
  const head = `<figcaption><span>${escapeHtml(language)}</span>${source}${copy}</figcaption>`;
  return `<figure class="code ${isDiagram ? "diagram" : ""}" dir="ltr">${head}<pre tabindex="0"><code>${html}</code></pre></figure>`;
};
/** Text of any language begins where it is read from. */
markdown.core.ruler.push("direction", ({ tokens }) => {
  for (const token of tokens) if (DIRECTED.test(token.type)) token.attrSet("dir", "auto");
});
for (const rule of ["th_open", "td_open"]) {
  markdown.renderer.rules[rule] = (tokens, index, options, _env, self) => {
    const token = tokens[index];
    const align = String(token?.attrGet("style") ?? "").split(":")[1];
    if (token) token.attrs = align ? [["class", `align-${align}`]] : null;
    return self.renderToken(tokens, index, options);
  };
}

interface Environment {
  highlight: Highlight | null;
}

function escapeHtml(text: string): string {
  return markdown.utils.escapeHtml(text);
}

export const MarkdownText = memo(function MarkdownText({ source }: { source: string }) {
  const highlight = useHighlight(/^ {0,3}(```|~~~)/m.test(source));
  const html = useMemo(() => ({ __html: markdown.render(source, { highlight }) }), [source, highlight]);
  const box = useRef<HTMLDivElement>(null);
  useDrawings(box, html);
  return <div ref={box} className="markdown" onClick={onPressed} dangerouslySetInnerHTML={html} />;
});

function onPressed({ target }: MouseEvent): void {
  const button = target instanceof Element ? target.closest<HTMLButtonElement>("button") : null;
  const figure = button?.closest("figure");
  if (button === null || figure == null) return;
  if ("source" in button.dataset) button.ariaPressed = String(figure.classList.toggle("with-source"));
  if (!("copy" in button.dataset)) return;
  void navigator.clipboard?.writeText(figure.querySelector("code")?.textContent ?? "");
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1_500);
}
