import MarkdownIt from "markdown-it";

/**
 * Formulas between `$`, `$$`, `\(` and `\[`, as elements that hold their source until somebody draws them. A single `$`
 * is more often a price or a variable: it must touch what it encloses, and no word may touch it from outside.
 */
export function formulas(markdown: InstanceType<typeof MarkdownIt>): void {
  markdown.inline.ruler.before("escape", "formula", (state, isSilent) => {
    const found = KINDS.find(({ opens }) => state.src.startsWith(opens, state.pos));
    if (found === undefined) return false;
    const { opens, closes, isDisplay } = found;
    const from = state.pos + opens.length;
    const to = state.src.indexOf(closes, from);
    const source = state.src.slice(from, to);
    if (to < from || source.trim() === "" || source.length > LONGEST) return false;
    if (opens === "$" && (!/^\S(?:[^\n]*\S)?$/.test(source) || /\w/.test(state.src[state.pos - 1] ?? "") || /\w/.test(state.src[to + 1] ?? ""))) return false;
    if (!isSilent) Object.assign(state.push("formula", "", 0), { content: source.trim(), info: isDisplay ? "block" : "" });
    state.pos = to + closes.length;
    return true;
  });
  markdown.renderer.rules["formula"] = (tokens, index) => {
    const { content = "", info = "" } = tokens[index] ?? {};
    return `<code class="formula ${info}" dir="ltr">${markdown.utils.escapeHtml(content)}</code>`;
  };
}

const LONGEST = 5_000;
const KINDS = [
  { opens: "$$", closes: "$$", isDisplay: true },
  { opens: "\\[", closes: "\\]", isDisplay: true },
  { opens: "\\(", closes: "\\)", isDisplay: false },
  { opens: "$", closes: "$", isDisplay: false },
] as const;
