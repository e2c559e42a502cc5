import MarkdownIt from "markdown-it";

/** `- [x] done` in lists: a mark in place of the brackets. */
export function tasks(markdown: InstanceType<typeof MarkdownIt>): void {
  markdown.core.ruler.after("inline", "tasks", ({ tokens, Token }) => {
    tokens.forEach((token, index) => {
      const first = token.children?.[0];
      const item = tokens[index - 2];
      const found = item?.type === "list_item_open" && first?.type === "text" ? /^\[([ xX])\] /.exec(first.content) : null;
      if (found === null || first === undefined) return;
      item?.attrJoin("class", "task");
      first.content = first.content.slice(found[0].length);
      const mark = new Token("task", "span", 0);
      mark.meta = { isDone: found[1] !== " " };
      token.children?.unshift(mark);
    });
  });
  markdown.renderer.rules["task"] = (tokens, index) => {
    const isDone = tokens[index]?.meta?.["isDone"] === true;
    return `<span class="box ${isDone ? "done" : ""}" role="img" aria-label="${isDone ? "done" : "to do"}"></span>`;
  };
}
