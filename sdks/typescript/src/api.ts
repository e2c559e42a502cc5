import type { components } from "./api.gen.js";

type Schemas = components["schemas"];

export type AgentInfo = Schemas["AgentInfo"];
export type AgentLogs = Schemas["AgentLogs"];
export type FsEntry = Schemas["FsEntry"];
export type FsStat = Schemas["FsStat"];
export type FsUploadResult = Schemas["FsUploadResult"];
export type FsWriteResult = Schemas["FsWriteResult"];
export type Health = Schemas["Health"];
export type Installed = Schemas["Installed"];
export type NodeView = Schemas["NodeView"];
export type ProcessConfig = Schemas["ProcessConfig"];
export type ProcessInfo = Schemas["ProcessInfo"];
export type ProcessResult = Schemas["ProcessResult"];
export type FoundSession = Schemas["FoundSession"];
export type SearchHit = Schemas["SearchHit"];
export type SearchResult = Schemas["SearchResult"];
export type SessionDetail = Schemas["SessionDetail"];
export type SessionList = Schemas["SessionList"];
export type SessionSummary = Schemas["SessionSummary"];
