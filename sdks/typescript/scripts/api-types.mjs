// Makes src/api.gen.ts from docs/openapi.json; with --check, says whether that would change anything.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapi, { astToString } from "openapi-typescript";

const source = new URL("../../../docs/openapi.json", import.meta.url);
const target = fileURLToPath(new URL("../src/api.gen.ts", import.meta.url));
const head = "// Made from docs/openapi.json by `npm run api`. Do not edit.\n";
const made = head + astToString(await openapi(source, { alphabetize: true }));

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== made) {
    console.error("src/api.gen.ts does not match docs/openapi.json: run npm run api and commit the result");
    process.exit(1);
  }
} else {
  writeFileSync(target, made);
}
