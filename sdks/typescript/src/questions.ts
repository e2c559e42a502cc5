import {
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { META } from "./rpc/messages.js";

/** A question of the agent with fixed choices: `_sandboxagent/session/request_question`. */
export interface QuestionRequest {
  sessionId: string;
  questionId?: string;
  prompt: string;
  /** Without any, every text is an answer. */
  options: QuestionOption[];
  multiSelect: boolean;
  status: string;
}

export interface QuestionOption {
  id: string;
  label: string;
  description?: string;
}

/** A question as agents spell it: as we do, or as the previous API did (`question_id`, options as strings). */
export function readQuestion(params: unknown): QuestionRequest {
  const given = (params ?? {}) as Record<string, unknown>;
  const questionId = given["question_id"] ?? given["questionId"];
  return {
    sessionId: String(given["sessionId"]),
    ...(questionId === undefined || questionId === null ? {} : { questionId: String(questionId) }),
    prompt: String(given["prompt"] ?? ""),
    options: Array.isArray(given["options"]) ? given["options"].map(readOption) : [],
    multiSelect: given["multiSelect"] === true,
    status: String(given["status"] ?? "requested"),
  };
}

function readOption(given: unknown): QuestionOption {
  if (typeof given !== "object" || given === null) return { id: String(given), label: String(given) };
  const { id, value, label, name, description } = given as Record<string, unknown>;
  const known = id ?? value ?? label ?? name ?? "";
  const read = { id: String(known), label: String(label ?? name ?? known) };
  return typeof description === "string" ? { ...read, description } : read;
}

/** What was answered: the chosen ids, wherever the client that answered has put them; null if it was rejected. */
export function questionAnswers(result: unknown): string[] | null {
  const { outcome, answers, _meta } = (result ?? {}) as { outcome?: unknown; answers?: unknown; _meta?: Record<string, unknown> | null };
  const ours = (_meta?.[META] ?? {}) as { answers?: unknown };
  const given = Array.isArray(answers) ? answers : Array.isArray(ours.answers) ? ours.answers : null;
  if (outcome !== undefined && outcome !== "answered") return null;
  return given?.flat().map(String) ?? (outcome === "answered" ? [] : null);
}

function questionResponse(answer: QuestionAnswer): unknown {
  if (answer === "rejected") return { outcome: "rejected", _meta: { [META]: { status: "rejected" } } };
  const told = { answers: [answer], response: answer.join(", "), status: "answered" };
  return { outcome: "answered", answers: [answer], _meta: { [META]: told } };
}

/** The ids of the chosen options, or the text where there are none; or "rejected". */
export type QuestionAnswer = string[] | "rejected";

/** An option by id or by kind, "cancelled", or a whole answer as ACP spells it. */
export type PermissionAnswer =
  | "allow_once"
  | "allow_always"
  | "reject_once"
  | "reject_always"
  | "cancelled"
  | { optionId: string }
  | RequestPermissionResponse;

export interface AskContext {
  /** Aborts when somebody else answered, the agent took it back, or the turn was cancelled. */
  signal: AbortSignal;
  /** The JSON-RPC id of the request; the history has it under the same. */
  requestId: unknown;
}

type Answering<Request, Answer> = (
  request: Request,
  context: AskContext,
) => Promise<Answer | undefined> | Answer | undefined;

/**
 * What to do when an agent asks something. A handler that gives undefined leaves it to other clients. Without a
 * handler, what is asked in a turn of ours is declined; what is asked in another client's turn is left to that one.
 */
export interface AskHandlers {
  onPermission?: Answering<RequestPermissionRequest, PermissionAnswer> | undefined;
  onQuestion?: Answering<QuestionRequest, QuestionAnswer> | undefined;
  onElicitation?: Answering<CreateElicitationRequest, CreateElicitationResponse> | undefined;
}

export const PERMISSION = "session/request_permission";
export const QUESTION = "_sandboxagent/session/request_question";
export const ELICITATION = "elicitation/create";

/** The same handlers, calling `onSet` whenever one of them is set. */
export function watched(handlers: AskHandlers, onSet: () => void): AskHandlers {
  return new Proxy(handlers, {
    set(target, name, value): boolean {
      const isSet = Reflect.set(target, name, value);
      onSet();
      return isSet;
    },
  });
}

/** The answer to a request of the agent; undefined leaves it to others. Throws RequestError for what we do not do. */
export async function answerAsk(
  handlers: AskHandlers,
  method: string,
  params: unknown,
  context: AskContext,
  isOurTurn: boolean,
): Promise<unknown> {
  switch (method) {
    case PERMISSION: {
      const request = params as RequestPermissionRequest;
      const { onPermission = () => (isOurTurn ? "reject_once" : undefined) } = handlers;
      const answer = await onPermission(request, context);
      return answer === undefined ? undefined : permissionResponse(request, answer);
    }
    case QUESTION: {
      const { onQuestion = () => (isOurTurn ? "rejected" : undefined) } = handlers;
      const answer = await onQuestion(readQuestion(params), context);
      return answer === undefined ? undefined : questionResponse(answer);
    }
    case ELICITATION: {
      const { onElicitation = () => (isOurTurn ? { action: "decline" as const } : undefined) } = handlers;
      return await onElicitation(params as CreateElicitationRequest, context);
    }
    default:
      throw RequestError.methodNotFound(method);
  }
}

/**
 * A kind that is not offered falls back to another of the same direction, and to cancelling if there is none.
 * But `allow_once` never becomes `allow_always`: that would grant more than was said.
 */
function permissionResponse(request: RequestPermissionRequest, answer: PermissionAnswer): RequestPermissionResponse {
  if (answer === "cancelled") return { outcome: { outcome: "cancelled" } };
  if (typeof answer === "object") {
    return "outcome" in answer ? answer : { outcome: { outcome: "selected", optionId: answer.optionId } };
  }
  const direction = answer.slice(0, answer.indexOf("_"));
  const found =
    request.options.find(({ kind }) => kind === answer) ??
    (answer === "allow_once" ? undefined : request.options.find(({ kind }) => kind.startsWith(direction)));
  return { outcome: found ? { outcome: "selected", optionId: found.optionId } : { outcome: "cancelled" } };
}
