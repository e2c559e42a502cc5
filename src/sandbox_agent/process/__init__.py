"""Starting, talking to and stopping one agent process."""

from sandbox_agent.process.agent_process import AgentProcess, ExitStatus
from sandbox_agent.process.environment import agent_environment
from sandbox_agent.process.stderr_log import StderrLog, StderrSummary

__all__ = ["AgentProcess", "ExitStatus", "StderrLog", "StderrSummary", "agent_environment"]
