"""What MCP says, as plain functions, frozen records and small state machines.

No socket, file, clock or task: the transports drive what is here.
"""
