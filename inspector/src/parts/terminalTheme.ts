import type { ISearchDecorationOptions } from "@xterm/addon-search";
import type { ITheme } from "@xterm/xterm";

/** The colours of a terminal, as the page has them now. */
export function themeNow(): ITheme {
  return colours({
    background: "--terminal",
    foreground: "--text",
    cursor: "--accent",
    cursorAccent: "--terminal",
    selectionBackground: "--selection",
    scrollbarSliderBackground: "--line",
    scrollbarSliderHoverBackground: "--line-strong",
    scrollbarSliderActiveBackground: "--line-strong",
    black: "--term-black",
    red: "--bad",
    green: "--good",
    yellow: "--ask",
    blue: "--busy",
    magenta: "--magenta",
    cyan: "--accent",
    white: "--term-white",
    brightBlack: "--muted",
    brightRed: "--bad",
    brightGreen: "--good",
    brightYellow: "--ask",
    brightBlue: "--busy",
    brightMagenta: "--magenta",
    brightCyan: "--accent-strong",
    brightWhite: "--text",
  });
}

/** How what is found is marked. */
export function marksNow(): ISearchDecorationOptions {
  return colours({
    matchBackground: "--ask-soft",
    matchOverviewRuler: "--ask",
    activeMatchBackground: "--found",
    activeMatchColorOverviewRuler: "--ask",
  });
}

/** Do something whenever the page becomes light or dark; gives the way to stop. */
export function onThemeChange(work: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(work);
  system.addEventListener("change", work);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", work);
    chosen.disconnect();
  };
}

/** xterm reads `#rrggbb` everywhere, and nothing else everywhere. */
function colours<Name extends string>(names: Record<Name, string>): Record<Name, string> {
  const probe = document.createElement("i");
  probe.className = "terminal-colours";
  document.body.append(probe);
  const found = Object.entries<string>(names).map(([name, variable]) => {
    probe.style.color = `var(${variable})`;
    const channels = getComputedStyle(probe).color.match(/[\d.]+/g) ?? [];
    return [name, `#${channels.slice(0, 3).map((value) => Number(value).toString(16).padStart(2, "0")).join("")}`];
  });
  probe.remove();
  return Object.fromEntries(found) as Record<Name, string>;
}
