"""Warning categories."""

from __future__ import annotations


class FallbackWarning(UserWarning, RuntimeWarning):
    """Something runs through ATen (or eager) that a user may have expected to be fused; the text says why and how to mend it."""
