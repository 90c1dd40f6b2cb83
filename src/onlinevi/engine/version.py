"""The version of the package: files say which one wrote them."""

__version__ = "0.1.0"
