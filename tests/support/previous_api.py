"""The types of the previous API, field by field, and where each field is now.

`TYPES` is what it had. A type of the new API in `SAME` or `MOVED` proves with its own fields that the name is right;
what is ACP's is in words.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.agents import InstallWish
from sandbox_agent.core import mcp_servers
from sandbox_agent.files import results
from sandbox_agent.history.universal import UniversalEvent
from sandbox_agent.http.api import agents, files, health, sessions
from sandbox_agent.hub.agents.probe import Offer
from sandbox_agent.hub.agents.status import ServerStatus
from sandbox_agent.hub.sessions.establish import Wishes
from sandbox_agent.hub.sessions.history import EventsWanted
from sandbox_agent.hub.sessions.views import SessionSummary

ENDPOINTS = """
GET /v1/health
GET /v1/agents
POST /v1/agents/{agent}/install
GET /v1/agents/{agent}/models
GET /v1/agents/{agent}/modes
GET /v1/fs/entries
DELETE /v1/fs/entry
GET /v1/fs/file
PUT /v1/fs/file
POST /v1/fs/mkdir
POST /v1/fs/move
GET /v1/fs/stat
POST /v1/fs/upload-batch
GET /v1/sessions
POST /v1/sessions/{id}
POST /v1/sessions/{id}/messages
POST /v1/sessions/{id}/messages/stream
POST /v1/sessions/{id}/terminate
GET /v1/sessions/{id}/events
GET /v1/sessions/{id}/events/sse
POST /v1/sessions/{id}/permissions/{permission}/reply
POST /v1/sessions/{id}/questions/{question}/reply
POST /v1/sessions/{id}/questions/{question}/reject
""".strip().split("\n")

TYPES: dict[str, list[str]] = {
    name: fields.split()
    for name, _, fields in (
        line.partition(": ")
        for line in """
HealthResponse: status
AgentListResponse: agents
AgentCapabilities: commandExecution errorEvents fileAttachments fileChanges images itemStarted mcpTools permissions \
planMode questions reasoning sessionLifecycle sharedProcess status streamingDeltas textMessages toolCalls toolResults
AgentInfo: capabilities credentialsAvailable id installed path serverStatus version
ServerStatusInfo: baseUrl lastError restartCount status uptimeMs
AgentInstallRequest: reinstall
AgentModelsResponse: defaultModel models
AgentModelInfo: defaultVariant id name variants
AgentModesResponse: modes
AgentModeInfo: description id name
CreateSessionRequest: agent agentMode agentVersion directory mcp model permissionMode skills title variant
CreateSessionResponse: error healthy nativeSessionId
McpServerConfig (local): args command cwd enabled env timeoutMs type
McpServerConfig (remote): bearerTokenEnvVar enabled envHeaders headers oauth timeoutMs transport type url
McpOAuthConfig: clientId clientSecret scope
SkillsConfig: sources
SkillSource: ref skills source subpath type
SessionListResponse: sessions
SessionInfo: agent agentMode createdAt directory ended eventCount mcp model nativeSessionId permissionMode sessionId \
skills title updatedAt variant
MessageRequest: attachments message
MessageAttachment: filename mime path
PermissionReplyRequest: reply
QuestionReplyRequest: answers
TurnStreamQuery: includeRaw
EventsQuery: includeRaw limit offset
EventsResponse: events hasMore
UniversalEvent: data event_id native_session_id raw sequence session_id source synthetic time type
SessionStartedData: metadata
SessionEndedData: exit_code message reason stderr terminated_by
StderrOutput: head tail total_lines truncated
TurnEventData: metadata phase turn_id
ItemEventData: item
UniversalItem: content item_id kind native_item_id parent_id role status
ItemDeltaData: delta item_id native_item_id
ErrorData: code details message
PermissionEventData: action metadata permission_id status
QuestionEventData: options prompt question_id response status
AgentUnparsedData: error location raw_hash
AgentError: agent details message session_id type
ProblemDetails: detail instance status title type
FsEntriesQuery: path sessionId
FsPathQuery: path sessionId
FsDeleteQuery: path recursive sessionId
FsSessionQuery: sessionId
FsUploadBatchQuery: path sessionId
FsEntry: entryType modified name path size
FsStat: entryType modified path size
FsWriteResponse: bytesWritten path
FsActionResponse: path
FsMoveRequest: from overwrite to
FsMoveResponse: from to
FsUploadBatchResponse: paths truncated
""".strip().split("\n")
    )
}


def fields_of(struct: Any) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


SAME: dict[str, Any] = {
    "HealthResponse": health.Health,
    "AgentListResponse": agents.AgentList,
    "AgentInfo": agents.AgentInfo,
    "ServerStatusInfo": ServerStatus,
    "AgentInstallRequest": InstallWish,
    "SessionListResponse": sessions.SessionList,
    "SessionInfo": SessionSummary,
    "EventsQuery": EventsWanted,
    "McpServerConfig (local)": mcp_servers._Local,
    "McpServerConfig (remote)": mcp_servers._Remote,
    "McpOAuthConfig": mcp_servers._OAuth,
    "FsEntriesQuery": files.EntriesQuery,
    "FsPathQuery": files.PathQuery,
    "FsDeleteQuery": files.DeleteQuery,
    "FsSessionQuery": files.SessionIdQuery,
    "FsUploadBatchQuery": files.PathQuery,
    "FsEntry": results.FsEntry,
    "FsStat": results.FsStat,
    "FsWriteResponse": results.FsWriteResult,
    "FsActionResponse": results.FsActionResult,
    "FsMoveRequest": files.MoveBody,
    "FsMoveResponse": results.FsMoveResult,
    "FsUploadBatchResponse": results.FsUploadResult,
}
"""Types that are there as they were, but for fields that are in `MOVED` or `ELSEWHERE`."""

MOVED: dict[str, tuple[str, Any, str]] = {
    "CreateSessionRequest.agent": ("_meta of session/new", Wishes, "agent"),
    "CreateSessionRequest.agentMode": ("_meta of session/new", Wishes, "agentMode"),
    "CreateSessionRequest.agentVersion": ("_meta of session/new", Wishes, "agentVersionRequested"),
    "CreateSessionRequest.mcp": ("_meta of session/new", Wishes, "mcp"),
    "CreateSessionRequest.model": ("_meta of session/new", Wishes, "model"),
    "CreateSessionRequest.permissionMode": ("_meta of session/new", Wishes, "permissionMode"),
    "CreateSessionRequest.skills": ("_meta of session/new", Wishes, "skills"),
    "CreateSessionRequest.title": ("_meta of session/new", Wishes, "title"),
    "CreateSessionResponse.nativeSessionId": ("GET /v1/sessions/{id}", SessionSummary, "nativeSessionId"),
    "SessionInfo.agentMode": ("the same type", SessionSummary, "mode"),
    "SessionInfo.directory": ("the same type", SessionSummary, "cwd"),
    "AgentModelsResponse.models": ("GET /v1/agents/{agent}", Offer, "models"),
    "AgentModesResponse.modes": ("GET /v1/agents/{agent}", Offer, "modes"),
    "TurnStreamQuery.includeRaw": ("_sandboxagent/session/events", EventsWanted, "includeRaw"),
}
"""Fields that have another name or place: where, the type that has it, its name."""

NOT_SUPPORTED = "not supported"
ELSEWHERE: dict[str, str] = {
    **{f"AgentCapabilities.{name}": "unchanged, beside the agent's own" for name in TYPES["AgentCapabilities"]},
    "ServerStatusInfo.baseUrl": "removed: agents have no address of their own",
    "AgentModelsResponse.defaultModel": "`currentValue` of the model in `configOptions` of `GET /v1/agents/{agent}`",
    "AgentModelInfo.id": "`id` in `models` of `GET /v1/agents/{agent}`",
    "AgentModelInfo.name": "`name` in `models`",
    "AgentModelInfo.defaultVariant": NOT_SUPPORTED,
    "AgentModelInfo.variants": NOT_SUPPORTED,
    "AgentModeInfo.id": "`id` in `modes` of `GET /v1/agents/{agent}`",
    "AgentModeInfo.name": "`name` in `modes`",
    "AgentModeInfo.description": "`description` in `modes`",
    "CreateSessionRequest.directory": "`cwd` of `session/new`",
    "CreateSessionRequest.variant": NOT_SUPPORTED,
    "CreateSessionResponse.error": "the JSON-RPC error",
    "CreateSessionResponse.healthy": "a response without an error",
    "SkillsConfig.sources": "unchanged, in `skills`",
    **{f"SkillSource.{name}": "unchanged, in `skills`" for name in TYPES["SkillSource"]},
    "SessionInfo.variant": NOT_SUPPORTED,
    "MessageRequest.message": "a text block in `prompt` of `session/prompt`",
    "MessageRequest.attachments": "`resource_link`, `image` or `resource` blocks in `prompt` of `session/prompt`",
    "MessageAttachment.filename": "`name` of the block",
    "MessageAttachment.mime": "`mimeType` of the block",
    "MessageAttachment.path": "`uri` of the block, as `file://` URI",
    "PermissionReplyRequest.reply": "the response to `session/request_permission`: the option of kind `allow_once` "
    "(once), `allow_always` (always) or `reject_once` (reject)",
    "QuestionReplyRequest.answers": "`answers` in the response to `_sandboxagent/session/request_question`, and in its "
    "`_meta`",
    "EventsResponse.events": "unchanged, in the result of `_sandboxagent/session/events`",
    "EventsResponse.hasMore": "unchanged, in the result of `_sandboxagent/session/events`",
    **{f"ProblemDetails.{name}": "unchanged; see [errors](errors.md)" for name in TYPES["ProblemDetails"]},
    "AgentError.agent": "`agent` in `error.data._meta`",
    "AgentError.session_id": "`sessionId` in `error.data._meta`",
    "AgentError.type": "`errorType` in `error.data._meta`; see [errors](errors.md)",
    "AgentError.message": "`error.message`",
    "AgentError.details": "`error.data`",
}

EVENT_TYPES = [
    "UniversalEvent",
    "SessionStartedData",
    "SessionEndedData",
    "StderrOutput",
    "TurnEventData",
    "ItemEventData",
    "UniversalItem",
    "ItemDeltaData",
    "ErrorData",
    "PermissionEventData",
    "QuestionEventData",
    "AgentUnparsedData",
]
"""These are unchanged in `_sandboxagent/session/events` with `"format": "legacy"`."""
LIVE: dict[str, str] = {
    "UniversalEvent.event_id": "legacyEvent.eventId",
    "UniversalEvent.sequence": "legacyEvent.sequence",
    "UniversalEvent.time": "legacyEvent.time",
    "UniversalEvent.type": "legacyEvent.type",
    "UniversalEvent.source": "legacyEvent.source",
    "UniversalEvent.synthetic": "legacyEvent.synthetic",
    "UniversalEvent.native_session_id": "legacyEvent.nativeSessionId",
    "TurnEventData.turn_id": "turn.turnId",
    "TurnEventData.phase": "phase",
    "ItemEventData.item": "item",
    "UniversalItem.item_id": "itemId",
    "UniversalItem.native_item_id": "nativeItemId",
    "UniversalItem.parent_id": "parentId",
    "UniversalItem.kind": "kind",
    "UniversalItem.role": "role",
    "ItemDeltaData.item_id": "itemId",
    "ItemDeltaData.native_item_id": "nativeItemId",
    "PermissionEventData.permission_id": "permissionId",
    "PermissionEventData.status": "status",
    "QuestionEventData.question_id": "questionId",
    "QuestionEventData.status": "status",
    "QuestionEventData.response": "response",
}
"""Where clients that ask for correlation find a field in the live message, under `_meta["sandboxagent.dev"]`."""

EVENT_FIELDS = fields_of(UniversalEvent)
