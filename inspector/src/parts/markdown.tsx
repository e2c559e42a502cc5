import MarkdownIt from "markdown-it";
import { memo, useMemo } from "react";
import "./markdown.css";

/**
 * Agents' text is hostile until shown otherwise: no HTML, no images from anywhere, links only to the web and only
 * in a new tab. The page's content security policy says the same once more.
 */
const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
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
for (const rule of ["th_open", "td_open"]) {
  markdown.renderer.rules[rule] = (tokens, index, options, _env, self) => {
    const token = tokens[index];
    const align = String(token?.attrGet("style") ?? "").split(":")[1];
    if (token) token.attrs = align ? [["class", `align-${align}`]] : null;
    return self.renderToken(tokens, index, options);
  };
}

function escapeHtml(text: string): string {
  return markdown.utils.escapeHtml(text);
}

const Piece = memo(function Piece({ source }: { source: string }) {
  const html = useMemo(() => ({ __html: markdown.render(source) }), [source]);
  return <div className="markdown" dangerouslySetInnerHTML={html} />;
});

export function MarkdownText({ source }: { source: string }) {
  return <Piece source={source} />;
}
