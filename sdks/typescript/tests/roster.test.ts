import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Roster } from "../src/roster.js";
import type { Session } from "../src/session.js";

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

function sessionNamed(id: string): Session {
  return { id, connection: { agent: "mock" }, handlers: {} } as unknown as Session;
}

it("finds the sessions that the program holds, and lets go of the others", async () => {
  const roster = new Roster();
  const kept = roster.add(sessionNamed("kept"));
  for (let number = 0; number < 100; number += 1) roster.add(sessionNamed(`s-${number}`));
  expect(roster.size).toBe(101);
  await expect
    .poll(() => {
      collectGarbage();
      return roster.size;
    })
    .toBe(1);
  expect(roster.of("mock", "kept")).toEqual([kept]);
});
