"""Decisions without IO: no await, no clock, no logging, no sockets."""
