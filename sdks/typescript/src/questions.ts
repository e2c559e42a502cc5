import {
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from "@agentclientprotocol/sdk";

/** A question of the agent with fixed choices: `_sandboxagent/session/request_question`. */
export interface QuestionRequest {
  sessionId: string;
  questionId?: string;
  prompt: string;
  options: { id: string; label: string; description?: string }[];
  multiSelect?: boolean;
}

/** The ids of the chosen options, or "rejected". */
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
      const answer = await onQuestion(params as QuestionRequest, context);
      if (answer === undefined) return undefined;
      return answer === "rejected" ? { outcome: "rejected" } : { outcome: "answered", answers: [answer] };
    }
    case ELICITATION: {
      const { onElicitation = () => (isOurTurn ? { action: "decline" as const } : undefined) } = handlers;
      return await onElicitation(params as CreateElicitationRequest, context);
    }
    default:
      throw RequestError.methodNotFound(method);
  }
}

/** A kind that is not offered falls back to another of the same direction, and to cancelling if there is none. */
function permissionResponse(request: RequestPermissionRequest, answer: PermissionAnswer): RequestPermissionResponse {
  if (answer === "cancelled") return { outcome: { outcome: "cancelled" } };
  if (typeof answer === "object") {
    return "outcome" in answer ? answer : { outcome: { outcome: "selected", optionId: answer.optionId } };
  }
  const direction = answer.slice(0, answer.indexOf("_"));
  const found =
    request.options.find(({ kind }) => kind === answer) ??
    request.options.find(({ kind }) => kind.startsWith(direction));
  return { outcome: found ? { outcome: "selected", optionId: found.optionId } : { outcome: "cancelled" } };
}
