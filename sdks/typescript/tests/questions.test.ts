import { expect, it } from "vitest";
import { answerAsk } from "../src/questions.js";

const context = { signal: new AbortController().signal, requestId: 1 };
const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const PERMISSION = "session/request_permission";
const QUESTION = "_sandboxagent/session/request_question";

it("declines what is asked in a turn of ours when there is no handler", async () => {
  const ask = async (method: string, params: unknown) => await answerAsk({}, method, params, context, true);
  expect(await ask(PERMISSION, { options })).toEqual({ outcome: { outcome: "selected", optionId: "no" } });
  expect(await ask(QUESTION, {})).toEqual({ outcome: "rejected" });
  expect(await ask("elicitation/create", {})).toEqual({ action: "decline" });
});

it("leaves what is asked in another client's turn to that client", async () => {
  for (const method of [PERMISSION, QUESTION, "elicitation/create"]) {
    expect(await answerAsk({}, method, { options }, context, false)).toBeUndefined();
  }
});

it("refuses methods that it does not know", async () => {
  await expect(answerAsk({}, "fs/read_text_file", {}, context, true)).rejects.toMatchObject({ code: -32601 });
});
