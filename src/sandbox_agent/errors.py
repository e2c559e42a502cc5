"""Every error of the product, named by its cause.

    SandboxAgentError
    ├── ClientError                  the caller can mend it
    │   ├── MalformedMessage         not one JSON-RPC 2.0 object
    │   │   └── BatchNotSupported    several of them in an array
    │   ├── InvalidParams            a field is missing or wrong
    │   │   └── BadArchive           an uploaded archive is damaged or hostile; nothing was changed
    │   ├── RequestCancelled         its sender took it back
    │   ├── MissingConnection        the connection header is absent
    │   ├── Unauthorized             no token, or a wrong one
    │   ├── Forbidden                Host, Origin or path is not allowed
    │   ├── MethodNotAllowed         the path is there, the method is not
    │   ├── NotFound
    │   │   ├── UnknownConnection
    │   │   ├── UnknownAgent
    │   │   └── UnknownSession
    │   ├── Conflict
    │   │   ├── StreamTaken          another reader holds the stream
    │   │   ├── SessionEnded         the session cannot go on
    │   │   └── SessionElsewhere     another server has it
    │   │       └── OwnerGone        that server is gone, and nobody is to take over
    │   ├── NotAcceptable
    │   ├── UnsupportedMediaType
    │   ├── TooLarge
    │   │   └── HeadTooLarge         the request line and the headers
    │   ├── RangeNotSatisfiable
    │   ├── UploadStalled            no byte of the body came for too long
    │   ├── ClientGone               it left before it had sent everything: nobody is told
    │   └── TooMany                  a limit on how many is reached: come back later
    │       └── SessionBusy          the session's prompt queue is full
    ├── AgentError                   the agent process broke it
    │   ├── AgentNotInstalled
    │   ├── AgentStartFailed         missing command, early exit, handshake refused
    │   ├── AgentExited              it died while somebody was waiting
    │   ├── AgentUnsupported         it lacks the method that was asked for
    │   └── AgentTimeout             it did not answer in time
    ├── RemoteError                  the agent answered with an error of its own, passed on as it is
    ├── ConnectionLost               the server cannot be reached, or went away (raised by the SDK)
    ├── UntrustedCertificate         the server's certificate is not believed (raised by the SDK)
    ├── RequestFailed                the agent answered with an error of its own (raised by the SDK)
    ├── InstallError                 an install did not happen; nothing was changed
    │   └── InstallImpossible        it cannot happen here: runtime, platform or support level
    ├── InsufficientStorage          the disk or the quota is full
    ├── StoreError                   history could not be opened, read or written
    │   ├── StoreInUse               another server keeps its history there
    │   └── StoreDegraded            history is not being written just now: what must be remembered is refused
    ├── ShuttingDown                 the server is on its way down
    ├── NodeDraining                 this node of a cluster takes no sessions any more
    ├── NodeUnreachable              the node that has the session does not answer
    ├── Overloaded                   the server has all the work that it can take
    └── ConfigError                  the settings are wrong; the server does not start

A class knows how it looks at the edge: HTTP status, JSON-RPC code, title, and whether a retry may help. It is
turned into a problem document or a JSON-RPC error once, there.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar


def reason_in(error: Any) -> str:
    """What a JSON-RPC error of an agent says: many say no more than `Internal error` in its message."""
    body = error if isinstance(error, dict) else {}
    message = str(body.get("message", "the agent answered with an error"))
    data = body.get("data")
    more = data.get("details") or data.get("message") if isinstance(data, dict) else data
    return f"{message}: {more}" if isinstance(more, str) and more and more != message else message


def hint_in(error: Any) -> str | None:
    """What to do about a JSON-RPC error, if it says so in `data.hint`."""
    data = error.get("data") if isinstance(error, dict) else None
    hint = data.get("hint") if isinstance(data, dict) else None
    return hint if isinstance(hint, str) and hint else None


class SandboxAgentError(Exception):
    """Base of all. `detail` is for people; `data` holds further members for programs."""

    status: int = 500
    code: ClassVar[int] = -32603
    title: ClassVar[str] = "Internal error"
    retryable: ClassVar[bool] = False
    legacy_type: ClassVar[str] = "stream_error"
    """What the earlier API called it."""

    def __init__(self, detail: str, **data: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.data = data

    @property
    def kind(self) -> str:
        """The class name in snake case, as used in `urn:sandbox-agent:error:<kind>`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()


class ClientError(SandboxAgentError):
    status = 400
    code = -32602
    title = "Bad request"
    legacy_type = "invalid_request"


class MalformedMessage(ClientError):
    code = -32600
    title = "Invalid JSON-RPC message"


class BatchNotSupported(MalformedMessage):
    status = 501
    title = "Batches not supported"


class InvalidParams(ClientError):
    title = "Invalid parameters"


class RequestCancelled(ClientError):
    code = -32800
    title = "Request cancelled"


class BadArchive(InvalidParams):
    title = "Invalid archive"


class MissingConnection(ClientError):
    title = "Missing connection header"


class Unauthorized(ClientError):
    status = 401
    title = "Unauthorized"
    legacy_type = "token_invalid"


class Forbidden(ClientError):
    status = 403
    title = "Forbidden"
    legacy_type = "permission_denied"


class MethodNotAllowed(ClientError):
    status = 405
    title = "Method not allowed"


class NotFound(ClientError):
    """ACP's "resource not found", whatever it was: a file, a session, an agent."""

    status = 404
    code = -32002
    title = "Not found"
    legacy_type = "not_found"


class UnknownConnection(NotFound):
    title = "Unknown connection"

    def __init__(self, connection_id: str) -> None:
        super().__init__(
            f"unknown connection {connection_id!r}: it was closed or never opened; send initialize to open a new one"
        )


class UnknownAgent(NotFound):
    title = "Unknown agent"
    legacy_type = "unsupported_agent"

    def __init__(self, agent_id: str, known: list[str]) -> None:
        super().__init__(f"unknown agent {agent_id!r}; known agents: {', '.join(known)}", known=known)


class UnknownSession(NotFound):
    title = "Unknown session"
    legacy_type = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session with id or alias {session_id!r}", sessionId=session_id)


class Conflict(ClientError):
    status = 409
    code = -32009
    title = "Conflict"
    legacy_type = "conflict"


class StreamTaken(Conflict):
    title = "Stream already has a reader"


class SessionEnded(Conflict):
    title = "Session has ended"


class SessionElsewhere(Conflict):
    title = "Session belongs to another server"
    retryable = True


class OwnerGone(SessionElsewhere):
    title = "The session's server is gone"
    retryable = False


class NotAcceptable(ClientError):
    status = 406
    title = "Not acceptable"
    legacy_type = "not_acceptable"


class UnsupportedMediaType(ClientError):
    status = 415
    title = "Unsupported media type"
    legacy_type = "unsupported_media_type"


class TooLarge(ClientError):
    status = 413
    title = "Payload too large"


class HeadTooLarge(TooLarge):
    status = 431
    title = "Request header fields too large"


class RangeNotSatisfiable(ClientError):
    status = 416
    title = "Range not satisfiable"


class UploadStalled(ClientError):
    status = 408
    title = "Upload stalled"
    retryable = True


class ClientGone(ClientError):
    title = "Client closed the connection"

    def __init__(self) -> None:
        super().__init__("the client closed the connection before its request was complete")


class TooMany(ClientError):
    status = 429
    code = -32001
    title = "Too many requests"
    retryable = True


class SessionBusy(TooMany):
    title = "Session busy"
    legacy_type = "conflict"


class AgentError(SandboxAgentError):
    status = 502
    title = "Agent error"
    retryable = True


class AgentNotInstalled(AgentError):
    status = 409
    title = "Agent not installed"
    retryable = False
    legacy_type = "agent_not_installed"


class AgentStartFailed(AgentError):
    title = "Agent failed to start"
    legacy_type = "agent_process_exited"


class AgentExited(AgentError):
    code = -32010
    title = "Agent exited"
    legacy_type = "agent_process_exited"


class AgentUnsupported(AgentError):
    status = 501
    code = -32601
    title = "Not supported by this agent"
    retryable = False
    legacy_type = "invalid_request"


class AgentTimeout(AgentError):
    status = 504
    code = -32011
    title = "Agent timed out"
    legacy_type = "timeout"


class RemoteError(SandboxAgentError):
    """`body` is the agent's JSON-RPC error."""

    status = 502
    title = "Agent answered with an error"

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(reason_in(body), agentError=body)
        self.body = body


class ConnectionLost(SandboxAgentError):
    status = 503
    title = "Server unreachable"
    retryable = True


class UntrustedCertificate(SandboxAgentError):
    status = 502
    title = "Certificate not trusted"


class RequestFailed(SandboxAgentError):
    """`remote_code` is the JSON-RPC code that the agent gave; `data["error"]` the whole error; `hint` what to do."""

    status = 502
    title = "Request failed"

    def __init__(self, detail: str, *, remote_code: int, **data: Any) -> None:
        super().__init__(detail, **data)
        self.remote_code = remote_code

    @property
    def hint(self) -> str | None:
        return hint_in(self.data.get("error"))

    def __str__(self) -> str:
        return f"{self.detail}; {self.hint}" if self.hint else self.detail


class InstallError(SandboxAgentError):
    status = 502
    title = "Install failed"
    retryable = True
    legacy_type = "install_failed"


class InsufficientStorage(SandboxAgentError):
    status = 507
    title = "Insufficient storage"
    retryable = True


class InstallImpossible(InstallError):
    status = 409
    title = "Agent cannot be installed"
    retryable = False


class StoreError(SandboxAgentError):
    status = 503
    title = "History store error"


class StoreInUse(StoreError):
    title = "History in use"


class StoreDegraded(StoreError):
    title = "History is not being written"
    retryable = True


class ShuttingDown(SandboxAgentError):
    status = 503
    code = -32012
    title = "Server shutting down"
    retryable = True


class NodeDraining(SandboxAgentError):
    status = 503
    code = -32012
    title = "Node draining"
    retryable = True


class NodeUnreachable(SandboxAgentError):
    status = 503
    code = -32014
    title = "Node unreachable"
    retryable = True


class Overloaded(SandboxAgentError):
    status = 503
    code = -32013
    title = "Server overloaded"
    retryable = True


class ConfigError(SandboxAgentError):
    title = "Invalid configuration"
