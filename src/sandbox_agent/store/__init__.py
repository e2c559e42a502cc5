"""Durable sessions and history behind one narrow interface."""

from sandbox_agent.store.base import Entry as Entry
from sandbox_agent.store.base import Lease as Lease
from sandbox_agent.store.base import Retention as Retention
from sandbox_agent.store.base import SessionFilter as SessionFilter
from sandbox_agent.store.base import SessionPage as SessionPage
from sandbox_agent.store.base import SessionRecord as SessionRecord
from sandbox_agent.store.base import Source as Source
from sandbox_agent.store.base import Store as Store
from sandbox_agent.store.base import StoreHealth as StoreHealth
from sandbox_agent.store.engines import make_store as make_store
from sandbox_agent.store.engines import open_store as open_store
from sandbox_agent.store.engines import secret_of as secret_of
from sandbox_agent.store.memory import MemoryStore as MemoryStore
from sandbox_agent.store.sqlite.store import SqliteStore as SqliteStore
