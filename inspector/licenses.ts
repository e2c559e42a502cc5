import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

const FILE = "third-party-licenses.txt";

/** Writes the licence notices of every package that has code in the bundle, which their licences ask for. */
export function licenses(): Plugin {
  return {
    name: "third-party-licenses",
    generateBundle(_, bundle) {
      const homes = new Set<string>();
      for (const part of Object.values(bundle)) {
        if (part.type !== "chunk") continue;
        for (const id of Object.keys(part.modules)) {
          const home = packageOf(id);
          if (home !== null) homes.add(home);
        }
      }
      const notices = [...homes].map(noticeOf).sort();
      this.emitFile({ type: "asset", fileName: FILE, source: `${[HEAD, ...notices].join(RULE)}\n` });
    },
  };
}

const HEAD = "The web UI contains code of these packages.\n";
const RULE = `\n${"-".repeat(80)}\n\n`;

/** The directory of the package that a module belongs to; null for our own. */
function packageOf(id: string): string | null {
  const path = id.replace(/^\0+/, "").replace(/\?.*$/, "");
  if (!path.includes("/node_modules/")) return null;
  for (let place = dirname(path); !place.endsWith("/node_modules"); place = dirname(place)) {
    const manifest = join(place, "package.json");
    if (existsSync(manifest) && "version" in JSON.parse(readFileSync(manifest, "utf8"))) return place;
  }
  return null;
}

function noticeOf(home: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as Record<string, string>;
  const texts = readdirSync(home).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  if (texts.length === 0) throw new Error(`${name} is in the bundle and has no licence text`);
  return [`${name} ${version} (${license})`, ...texts.sort().map((file) => readFileSync(join(home, file), "utf8").trim())].join("\n\n");
}
