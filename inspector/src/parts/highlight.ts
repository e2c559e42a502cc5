import type { HLJSApi } from "highlight.js";
import { useEffect } from "react";
import { Store, useStore } from "../state/store";

/** A piece of a line, with the classes that colour it. */
export interface Token {
  text: string;
  look: string;
}

const LIMIT = 100_000;
const loaded = new Store<HLJSApi | null>(null);
let isLoading = false;

/** Give code its colours, as HTML of which every character is escaped; null where the language is not known. */
export type Highlight = (code: string, language: string) => string | null;

/** The highlighter, once it has arrived. Asking for it fetches it. */
export function useHighlight(isWanted = true): Highlight | null {
  const hljs = useStore(loaded);
  useEffect(() => {
    if (isWanted) load();
  }, [isWanted]);
  return hljs === null || !isWanted ? null : highlightWith(hljs);
}

function load(): void {
  if (isLoading) return;
  isLoading = true;
  import("./languages").then(
    ({ default: hljs }) => loaded.set(hljs as unknown as HLJSApi),
    () => (isLoading = false), // asked for again with the next code
  );
}

const made = new WeakMap<HLJSApi, Highlight>();

function highlightWith(hljs: HLJSApi): Highlight {
  const known = made.get(hljs);
  if (known !== undefined) return known;
  const highlight: Highlight = (code, language) => {
    if (code.length > LIMIT || hljs.getLanguage(language) === undefined) return null;
    return hljs.highlight(code, { language, ignoreIllegals: true }).value;
  };
  made.set(hljs, highlight);
  return highlight;
}

/** The lines of a file, each as tokens; null where they stay plain. */
export function tokenLines(highlight: Highlight | null, code: string, path: string): Token[][] | null {
  const html = highlight?.(code, languageOf(path)) ?? null;
  return html === null ? null : linesOf(html);
}

function linesOf(html: string): Token[][] {
  const lines: Token[][] = [[]];
  const looks: string[] = [];
  for (const [found, look] of html.matchAll(/<span class="([^"]*)">|<\/span>|[^<]+/g)) {
    if (look !== undefined) looks.push(look);
    else if (found === "</span>") looks.pop();
    else {
      unescaped(found)
        .split("\n")
        .forEach((text, index) => {
          if (index > 0) lines.push([]);
          if (text !== "") lines.at(-1)?.push({ text, look: looks.at(-1) ?? "" });
        });
    }
  }
  return lines;
}

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

function unescaped(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity] as string);
}

const NAMES: Record<string, string> = { dockerfile: "dockerfile", makefile: "makefile", gnumakefile: "makefile" };
const ENDINGS: Record<string, string> = { h: "c", hpp: "cpp", cc: "cpp", htm: "xml", html: "xml", svg: "xml", vue: "xml", mjs: "javascript", cjs: "javascript", zsh: "bash", fish: "bash", conf: "ini", cfg: "ini", pyi: "python", lock: "ini" };

/** By the file's name, as the highlighter calls it. */
export function languageOf(path: string): string {
  const name = path.split("/").at(-1)?.toLowerCase() ?? "";
  const ending = name.includes(".") ? (name.split(".").at(-1) as string) : "";
  return NAMES[name] ?? ENDINGS[ending] ?? ending;
}
