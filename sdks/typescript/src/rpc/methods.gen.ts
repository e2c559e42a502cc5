// Made from src/sandbox_agent/core/methods.py by `make generated`. Do not edit.
export const EXTENSION_PREFIX = "_sandboxagent/";

/** Whether a request that the server may have already does no harm when it is sent again. */
export const MAY_REPEAT: Readonly<Record<string, boolean>> = {
  "initialize": true,
  "authenticate": false,
  "logout": true,
  "session/new": false,
  "session/load": true,
  "session/resume": true,
  "session/fork": false,
  "session/list": true,
  "session/prompt": true,
  "session/close": true,
  "session/delete": true,
  "session/set_mode": true,
  "session/set_model": true,
  "session/set_config_option": true,
  "_sandboxagent/fs/move": false,
  "_sandboxagent/fs/delete_entry": false,
};
