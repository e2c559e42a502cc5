"""Every program that we run: launching it, pumping it, noticing its exit, stopping it within bounds."""

from sandbox_agent.process.agent_process import AgentProcess
from sandbox_agent.process.child import Child, ExitStatus
from sandbox_agent.process.environment import child_environment
from sandbox_agent.process.output_log import Entry, LogReader, OutputLog, Piece
from sandbox_agent.process.owner import owner_ended
from sandbox_agent.process.program_input import ProgramInput
from sandbox_agent.process.pty import Pty, PtyOutput
from sandbox_agent.process.roster import ROSTER, no_orphans
from sandbox_agent.process.stderr_log import StderrLog, StderrSummary

__all__ = [
    "ROSTER",
    "AgentProcess",
    "Child",
    "Entry",
    "ExitStatus",
    "LogReader",
    "OutputLog",
    "Piece",
    "ProgramInput",
    "Pty",
    "PtyOutput",
    "StderrLog",
    "StderrSummary",
    "child_environment",
    "no_orphans",
    "owner_ended",
]
