import { expect, it } from "vitest";
import { answerAsk, questionAnswers, readQuestion } from "../src/questions.js";

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
  expect(await ask(QUESTION, {})).toMatchObject({ outcome: "rejected" });
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

it("understands a question as the previous API spelled it, and answers at the root and in _meta", async () => {
  const params = { sessionId: "s", question_id: "q1", prompt: "Which?", options: ["red", "blue"], status: "requested" };
  const seen: unknown[] = [];
  const onQuestion = (request: unknown) => {
    seen.push(request);
    return ["blue"];
  };
  const answer = await answerAsk({ onQuestion }, QUESTION, params, context, true);
  const options = [{ id: "red", label: "red" }, { id: "blue", label: "blue" }];
  expect(seen).toEqual([{ sessionId: "s", questionId: "q1", prompt: "Which?", options, multiSelect: false, status: "requested" }]);
  const told = { answers: [["blue"]], response: "blue", status: "answered" };
  expect(answer).toEqual({ outcome: "answered", answers: [["blue"]], _meta: { "sandboxagent.dev": told } });
  const rejected = await answerAsk({ onQuestion: () => "rejected" }, QUESTION, params, context, true);
  expect(rejected).toEqual({ outcome: "rejected", _meta: { "sandboxagent.dev": { status: "rejected" } } });
});

it("understands a question without options, and options of any shape", () => {
  expect(readQuestion({ sessionId: "s", prompt: "Name?" }).options).toEqual([]);
  expect(readQuestion({ options: null }).options).toEqual([]);
  const given = [{ id: 1, label: "One", description: "first" }, { value: "two" }, 3, null];
  expect(readQuestion({ options: given }).options).toEqual([
    { id: "1", label: "One", description: "first" },
    { id: "two", label: "two" },
    { id: "3", label: "3" },
    { id: "null", label: "null" },
  ]);
});

it("finds the answers of another client wherever it put them", () => {
  expect(questionAnswers({ outcome: "answered", answers: [["a"]] })).toEqual(["a"]);
  expect(questionAnswers({ outcome: "answered", _meta: { "sandboxagent.dev": { answers: [["a", "b"]] } } })).toEqual(["a", "b"]);
  expect(questionAnswers({ _meta: { "sandboxagent.dev": { answers: [["a"]] } } })).toEqual(["a"]);
  expect(questionAnswers({ outcome: "rejected" })).toBeNull();
  expect(questionAnswers(null)).toBeNull();
});
