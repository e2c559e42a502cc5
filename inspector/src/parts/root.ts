import { createContext } from "react";

/** The directory of the session that is shown: what lies in it is named from there. */
export const Root = createContext("/");

/** `src/a.py` of a file in the directory; a file elsewhere keeps its whole path. */
export function below(path: string, root: string): string {
  const base = root.endsWith("/") ? root : `${root}/`;
  return base !== "/" && path.startsWith(base) ? path.slice(base.length) : path;
}
