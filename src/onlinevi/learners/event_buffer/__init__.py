"""One event at a time, in place: for those who have events as they come, not blocks of rows."""

from onlinevi.learners.event_buffer.buffer import EventBuffer, StateBuffer, buffer_for

__all__ = ["EventBuffer", "StateBuffer", "buffer_for"]
