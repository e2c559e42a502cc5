"""Durable sessions and history behind one narrow interface."""
