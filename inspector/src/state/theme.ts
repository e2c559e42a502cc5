import { useState } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "sandbox-agent.theme";
const ORDER: Theme[] = ["system", "light", "dark"];

export function nextTheme(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] as Theme;
}

export function applyTheme(theme: Theme = stored()): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(stored);
  return [
    theme,
    (chosen) => {
      localStorage.setItem(KEY, chosen);
      applyTheme(chosen);
      setTheme(chosen);
    },
  ];
}

function stored(): Theme {
  const found = localStorage.getItem(KEY);
  return ORDER.includes(found as Theme) ? (found as Theme) : "system";
}
