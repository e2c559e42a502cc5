"""The built-in agent: a real ACP v1 process over stdio whose behaviour is chosen by words in the prompt.

It is a program of its own, not a part of the server: it imports nothing of the server, and neither `acp` nor
pydantic, so that it starts in well under 100 ms.
"""
