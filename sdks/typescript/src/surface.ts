export type * from "./api.js";
export { Agents, type InstallOptions, type InstallProgress } from "./agents.js";
export type { ClientOptions, ConnectOptions } from "./client.js";
export { AgentConnection } from "./connection.js";
export { ConnectionLost, errorKind, explain, type Problem, ProblemError, RequestError } from "./errors.js";
export { Files, type FileOptions } from "./files.js";
export type { Follower, SessionEvent } from "./follow.js";
export { Nodes } from "./nodes.js";
export {
  type CommandOptions,
  Processes,
  type ProcessOutput,
  type RunOptions,
  SandboxProcess,
  type StartProcessOptions,
} from "./processes.js";
export { questionAnswers, readQuestion } from "./questions.js";
export type { AskContext, AskHandlers, PermissionAnswer, QuestionAnswer, QuestionOption, QuestionRequest } from "./questions.js";
export type { Envelope, Notice } from "./rpc/messages.js";
export type { HistoryEvent, HistoryPage, HistorySource } from "./rpc/recovery.js";
export { type ConnectionState, RpcStream, type RpcStreamOptions } from "./rpc/stream.js";
export { type PromptOptions, Session, type SessionSetup } from "./session.js";
export { type CreateOptions, type ListOptions, type OpenOptions, type SearchOptions, Sessions } from "./sessions.js";
export { type PromptInput, Turn } from "./turn.js";
