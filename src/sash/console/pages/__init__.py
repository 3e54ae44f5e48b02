from sash.console.pages.register import register

__all__ = ["register"]
