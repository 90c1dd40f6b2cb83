"""A small client of ``onlinevi serve``, of the standard library alone."""

from onlinevi.adapters.client.remote import Client, Remote, ServiceError

__all__ = ["Client", "Remote", "ServiceError"]
