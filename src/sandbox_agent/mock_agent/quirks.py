"""Start flags that imitate oddities of real agents. The fields are the table that makes flags and manual."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """All off by default. A number's `title` is the name of its argument."""

    protocol: Annotated[
        int | None,
        Meta(
            title="VERSION",
            description="with 2: speak ACP version 2 with a client that asks for it; `$SANDBOX_AGENT_MOCK_PROTOCOL` "
            "does the same. Without, version 1 is spoken whatever the client asks for",
        ),
    ] = None
    no_v1: Annotated[
        bool, Meta(description="with `--protocol 2`: refuse a client that asks for version 1 with error -32022")
    ] = False
    early_updates: Annotated[bool, Meta(description="send a `session/update` before the `session/new` answer")] = False
    no_load: Annotated[bool, Meta(description="lack `session/load`: no capability, and -32601")] = False
    no_resume: Annotated[bool, Meta(description="lack `session/resume`: no capability, and -32601")] = False
    no_list: Annotated[bool, Meta(description="lack `session/list`: no capability, and -32601")] = False
    uuid_ids: Annotated[
        bool, Meta(description="number requests to the client with UUID strings instead of 0, 1, 2, …")
    ] = False
    counter_sessions: Annotated[
        bool,
        Meta(
            description="name sessions `20261115_1`, `20261115_2`, … from 1 in each process, so that they "
            "are not unique between processes (a stored session of that name is replaced)"
        ),
    ] = False
    no_set_model: Annotated[
        bool, Meta(description="answer `session/set_model` with -32601; the config option `model` stays")
    ] = False
    no_set_mode: Annotated[
        bool,
        Meta(description="answer `session/set_mode` with -32601 and send no `modes`; the config option stays"),
    ] = False
    legacy_models: Annotated[
        bool,
        Meta(description="send `models` and no `configOptions`; `session/set_config_option` answers -32601"),
    ] = False
    dead_models: Annotated[
        bool,
        Meta(description="send `models` beside the config option, although `session/set_model` answers -32601"),
    ] = False
    own_model_ids: Annotated[
        bool,
        Meta(
            description="send `models` beside the config option under ids of their own (`mock-small[fast]`, …), "
            "which are all that `session/set_model` takes"
        ),
    ] = False
    fail_load: Annotated[
        bool, Meta(description="claim `session/load` and `session/resume`, and answer both with error -32603")
    ] = False
    late_replay: Annotated[bool, Meta(description="replay a session only after `session/load` has been answered")] = (
        False
    )
    needs_auth: Annotated[
        bool,
        Meta(
            description="offer the auth method `mock-login`, and answer `session/new` with error -32000 until "
            "`authenticate` was called with it"
        ),
    ] = False
    bare_permissions: Annotated[
        bool, Meta(description="name nothing but the `toolCallId` of the tool call in a permission request")
    ] = False
    fail_initialize: Annotated[bool, Meta(description="answer `initialize` with error -32603")] = False
    exit_at_start: Annotated[
        int | None,
        Meta(title="CODE", description="write a line on stderr and exit with CODE before reading anything"),
    ] = None
    ignore_eof: Annotated[bool, Meta(description="stay alive when stdin ends")] = False
    ignore_term: Annotated[bool, Meta(description="stay alive on SIGTERM")] = False
    withdraw: Annotated[
        bool,
        Meta(
            description="withdraw a permission that is not answered within 200 ms with `$/cancel_request`, "
            "and go on as if it had been rejected"
        ),
    ] = False
    slow_initialize: Annotated[
        int | None, Meta(title="MS", description="answer `initialize` only after MS milliseconds")
    ] = None
    wait_permission_on_cancel: Annotated[
        bool,
        Meta(description="on `session/cancel` with a permission open, end the turn only when it is answered"),
    ] = False
    leak: Annotated[
        bool, Meta(description="send every update of a session under the ids of all sessions of the process")
    ] = False
    echo_prompts: Annotated[
        bool, Meta(description="send each prompt back as `user_message_chunk`, in chunks, before anything else")
    ] = False
    never_ask: Annotated[bool, Meta(description="run tools without asking for permission")] = False
    ignore_cancel: Annotated[bool, Meta(description="go on with a turn that is cancelled")] = False
