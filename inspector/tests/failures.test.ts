import { expect, test } from "vitest";
import { explain, plainReason } from "../src/state/failures";

const FAILED = "The turn failed";

test("what the server says to programs is told to people, with what to do", () => {
  const said: [string, string][] = [
    ["agent 'mock' exited with code 3; the session comes back with the next prompt", "The agent stopped (exit code 3)"],
    ["agent 'mock' was ended by SIGKILL", "The agent was ended by SIGKILL"],
    ["agent 'mock' is not running: session/prompt was not sent", "The agent was stopped"],
    ["agent 'mock' did not start: no such file", "The agent could not be started: no such file"],
    ["agent 'mock' did not answer session/load within 30 s", "The agent did not answer in time"],
    ["turn 'a' was running when the server stopped", "The turn failed: the server was restarted while it ran"],
    ["prompting needs the right 'prompt'; the token 'ci' has 'read'", "Your token does not allow that: it needs the right “prompt”"],
  ];
  for (const [detail, text] of said) {
    const explained = explain({ text: FAILED, detail });
    expect(explained.text).toBe(text);
    expect(explained.advice).toMatch(/\.$/);
    expect(explained.detail).toBeNull(); // nothing is said twice
  }
});

test("what the agent wrote before it stopped is kept beside the explanation", () => {
  expect(explain({ text: FAILED, detail: "agent 'mock' exited with code 3\nboom" }).detail).toBe("boom");
});

test("what is not known is told as it was said", () => {
  expect(explain({ text: FAILED, detail: "out of tea" })).toEqual({ text: FAILED, advice: null, detail: "out of tea" });
  expect(plainReason("out of tea")).toBe("out of tea");
});
